"""``python -m eman``."""

import sys

from eman.cli import main

if __name__ == "__main__":
    sys.exit(main())
