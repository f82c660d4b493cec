# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages in the user's language, as far as Blender has translations of them.

Names and descriptions of properties, operators and panels are translated by Blender itself; what is put together from
numbers goes through here, whole sentences at a time.
"""

import bpy

_translations = bpy.app.translations
_translate = getattr(_translations, "pgettext_rpt", _translations.pgettext_tip)  # of reports, since 4.1


def words(message, **values):
    """A sentence with values in its braces."""
    return _translate(message).format(**values)
