"""`python -m replay`."""

import sys

from replay.cli.entry import main

sys.exit(main())
