"""`python -m evo`."""

import sys

from evo.cli.entry import main

sys.exit(main())
