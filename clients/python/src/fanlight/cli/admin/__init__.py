"""`fanlight admin`: what an operator can see and do, over the broker's HTTP API (docs/admin-command.md)."""

from .arguments import add_to
from .commands import run

__all__ = ["add_to", "run"]
