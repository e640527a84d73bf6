"""The limits in force as metrics: limit_stored_bytes beside stored_bytes, so that "80 % full" can be alerted on."""

from fanlight_broker.config.keys import LIMITS, keys
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.metrics import MetricFamily


def limit_families(limits: Limits) -> list[MetricFamily]:
    """A gauge for each limit that is a number; the value of a percentage is a ratio."""
    families = []
    for key in keys().values():
        if key.group == LIMITS and key.kind in (int, float):
            name, value = key.name.removesuffix("_max"), getattr(limits, key.name)
            if name.endswith("_percent"):  # Prometheus' base unit is the ratio
                name, value = f"{name.removesuffix('_percent')}_ratio", value / 100
            help = f"The setting {key.name}: {key.reason}"
            families.append(MetricFamily(f"limit_{name}", help, "gauge", [({}, value)]))
    return families
