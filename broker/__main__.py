"""`python -m broker` is `fanlightd`."""

from broker.cli import main

raise SystemExit(main())
