"""`python -m broker.config`: prints docs/configuration.md."""

import sys

from broker.config.explain import markdown

sys.stdout.write(markdown())
