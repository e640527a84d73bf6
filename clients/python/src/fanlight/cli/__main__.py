"""`python -m fanlight.cli`, where the script is not on the path."""

import sys

from .entry import main

sys.exit(main())
