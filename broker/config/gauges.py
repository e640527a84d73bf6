"""The limits in force as figures: limit_stored_bytes beside stored_bytes, so that "80 % full" can be alerted on."""

from broker.config.keys import LIMITS, keys
from broker.core.limits import Limits
from broker.core.measures import Family


def limit_families(limits: Limits) -> list[Family]:
    """One gauge for each limit that is a number: connections_max is limit_connections."""
    return [
        Family(
            f"limit_{key.name.removesuffix('_max')}", f"The setting {key.name}: {key.reason}", "gauge",
            [({}, getattr(limits, key.name))],
        )
        for key in keys().values() if key.group == LIMITS and key.kind in (int, float)
    ]  # fmt: skip
