"""The HTTP listener: /healthz, /readyz, /metrics, and JSON views of the broker."""

from fanlight_broker.admin.http import AdminServer
from fanlight_broker.admin.metric_source import MetricSource

__all__ = ["AdminServer", "MetricSource"]
