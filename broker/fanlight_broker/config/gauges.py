"""The limits in force as figures: limit_stored_bytes beside stored_bytes, so that "80 % full" can be alerted on."""

from fanlight_broker.config.keys import LIMITS, keys
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.measures import Family


def limit_families(limits: Limits) -> list[Family]:
    """A gauge for each limit that is a number; the value of a percentage is a ratio."""
    families = []
    for key in keys().values():
        if key.group == LIMITS and key.kind in (int, float):
            name, value = key.name.removesuffix("_max"), getattr(limits, key.name)
            if name.endswith("_percent"):  # Prometheus' base unit is the ratio
                name, value = f"{name.removesuffix('_percent')}_ratio", value / 100
            families.append(Family(f"limit_{name}", f"The setting {key.name}: {key.reason}", "gauge", [({}, value)]))
    return families
