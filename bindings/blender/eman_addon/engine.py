# SPDX-License-Identifier: GPL-3.0-or-later
"""The package eman: that of the extension's wheel, or the copy inside the add-on's own folder."""

import sys
from pathlib import Path

try:
    import eman
except ImportError:
    sys.path.append(str(Path(__file__).with_name("vendor")))
    import eman

from eman import shipped

from . import preferences

__all__ = ["context", "eman", "load_model", "shipped_names"]

shipped_names = shipped.names

_contexts = {}


def context():
    """The context that the preferences ask for, made once."""
    wanted = preferences.of_context()
    if wanted not in _contexts:
        threads, megabytes, instruction_set = wanted
        _contexts[wanted] = eman.Context(threads, megabytes * 1_000_000, instruction_set)
    return _contexts[wanted]


def load_model(settings):
    """The model that is chosen in the panel."""
    if settings.model == "FILE":
        path = preferences.absolute(settings.model_path)
        if not path:
            raise eman.InvalidArgumentError("choose a model file first")
        return eman.Model.load(path, context=context())
    return eman.Model.shipped(settings.model, context=context())
