"""`python -m checkstream`."""

import sys

from checkstream.cli import main

if __name__ == "__main__":
    sys.exit(main())
