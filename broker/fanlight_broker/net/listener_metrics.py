"""The metrics of listeners: connections, messages and bytes by protocol and port."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from fanlight_broker.core.inspection import COUNTERS
from fanlight_broker.core.metrics import MetricFamily
from fanlight_broker.net.listener import Listener

BY_PROTOCOL: Final = (
    "connections_accepted", "connections_closed", "connections_refused", "connections_revoked", "connections_expired",
    "protocol_errors", "requests_refused",
)
BY_LISTENER: Final = ("messages_in", "messages_out", "bytes_in", "bytes_out")


def families_of(listeners: Sequence[Listener]) -> list[MetricFamily]:
    """For /metrics."""
    ports = [(traffic, {"protocol": each.name, "listener": traffic.name}) for each in listeners
             for traffic in each.traffic]  # fmt: skip
    counted = [({"protocol": name}, *_together([each for each in listeners if each.name == name]))
               for name in dict.fromkeys(each.name for each in listeners)]  # fmt: skip
    found = [
        MetricFamily(
            "connections", "Open connections, those in their handshake included", "gauge",
            [(labels, traffic.connections) for traffic, labels in ports],
        )
    ]  # fmt: skip
    found += [
        MetricFamily(
            name, COUNTERS[name], "counter", [(labels, getattr(traffic.meter, name)) for traffic, labels in ports],
            replaces=frozenset([name]),
        )
        for name in BY_LISTENER
    ]  # fmt: skip
    found += [
        MetricFamily(
            name, COUNTERS[name], "counter", [(labels, counts[name]) for labels, counts, _ in counted],
            replaces=frozenset([name]),
        )
        for name in BY_PROTOCOL
    ]  # fmt: skip
    stages: list[tuple[Mapping[str, str], float]] = []
    for labels, counts, failed in counted:
        stages += [({**labels, "stage": stage}, count) for stage, count in failed.items()]
        stages.append(({**labels, "stage": "protocol"}, counts["handshakes_failed"] - sum(failed.values())))
    found.append(MetricFamily(
        "handshakes_failed", "Connections that did not get through a handshake, by the one that failed", "counter",
        stages, replaces=frozenset(["handshakes_failed", "tls_handshakes_failed", "websocket_handshakes_failed"]),
    ))
    return found


def _together(listeners: Sequence[Listener]) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """What all listeners of a protocol have counted; and their failed handshakes by stage."""
    counts, stages = Counter[str](), Counter[str]()
    for each in listeners:
        counts.update(each.counters())
        stages.update(each.stages_failed)
    return counts, stages
