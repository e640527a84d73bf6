"""The metrics of listeners: connections, messages and bytes by protocol and port."""

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
    counted = [({"protocol": each.name}, each.counters(), each.stages_failed) for each in listeners]
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
