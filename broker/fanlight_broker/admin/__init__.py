"""The HTTP listener: /healthz, /readyz, /metrics, and JSON views of the broker."""

from fanlight_broker.admin.figures import Figures
from fanlight_broker.admin.http import AdminServer

__all__ = ["AdminServer", "Figures"]
