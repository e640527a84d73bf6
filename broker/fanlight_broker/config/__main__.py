"""`python -m fanlight_broker.config`: prints docs/configuration.md."""

import sys

from fanlight_broker.config.explain import markdown

sys.stdout.write(markdown())
