"""The HTTP listener: /healthz, /readyz, /metrics, and JSON views of the broker."""

from broker.admin.figures import Figures
from broker.admin.http import AdminServer

__all__ = ["AdminServer", "Figures"]
