"""`python -m ef` is the command `ef`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
