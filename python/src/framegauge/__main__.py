"""`python -m framegauge`."""

import sys

from framegauge.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
