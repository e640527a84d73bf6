"""What was promised and what happened, over kills: the rules of tests/simulation, and three that need a store.

    settled    a subscriber's acknowledgement was processed, and a later message was synced: it is not sent again
    retained   the value of a topic is the last one that was acknowledged, or a later one
    group      what a shared subscription was to get, one of its members has got

Times are places in one order of events, as this process saw them: no clock takes part.
"""

from collections import Counter
from collections.abc import Mapping

from tests.simulation.history import History, Violation

KEPT = "kept/"


class CrashHistory(History):
    def __init__(self) -> None:
        super().__init__()
        self.written = Counter[bytes]()  # payload -> times that it was published, and published again
        self._written_at: dict[bytes, int] = {}  # of those not acknowledged yet
        self.synced_through = 0  # what the broker had processed before is synced
        self.durable_at = 0  # `synced_through` at the last kill
        self.settled: dict[tuple[str, bytes], int] = {}  # (session, payload) -> when its acknowledgement was processed
        self.latest: dict[str, bytes] = {}  # topic -> the retained payload that was acknowledged last
        self.unsettled = 0  # acknowledgements that a kill may have lost
        self.deliveries = self.redeliveries = 0
        self.kills = 0

    def wrote(self, payload: bytes) -> None:
        """It was written to a connection, maybe once more."""
        self.written[payload] += 1
        self._written_at[payload] = self.tick()

    def accepted(self, payload: bytes) -> None:
        super().accepted(payload)
        sent = self.sent[payload]
        # The log has one order, and this message is synced: so is what was processed before it was written. One that
        # was written again may have been synced before, and is then acknowledged at once.
        if self.written[payload] == 1:
            self.synced_through = max(self.synced_through, self._written_at.pop(payload, 0))
        if sent.topic.startswith(KEPT):
            before = self.latest.get(sent.topic)
            if before is None or self.sent[before].number < sent.number:
                self.latest[sent.topic] = payload

    def killed(self) -> None:
        """Nothing that the broker had not synced until now is promised, nor by what is synced in another life."""
        self.kills += 1
        self.durable_at = self.synced_through
        lost = [pair for pair, at in self.settled.items() if at >= self.durable_at]
        self.unsettled += len(lost)
        for pair in lost:
            del self.settled[pair]

    def delivered(self, name: str, payload: bytes, topic: str, qos: int, *, dup: bool) -> None:
        super().delivered(name, payload, topic, qos, dup=dup)
        self.deliveries += 1
        if not dup:
            return
        self.redeliveries += 1
        settled = self.settled.pop((name, payload), None)  # that acknowledgement was lost; another one follows
        if settled is not None and settled < self.durable_at and self.written[payload] == 1:
            raise Violation(f"{name} got {payload!r} again; its acknowledgement was processed and synced before a kill")

    def settle(self, name: str, payload: bytes) -> None:
        """The broker has processed the acknowledgement of this message."""
        self.settled[name, payload] = self.tick()

    def check_value(self, topic: str, payload: bytes, least: bytes) -> None:
        """A retained value that was read; `least`: the one acknowledged last before it was asked for."""
        found = self.sent.get(payload)
        if found is None or found.topic != topic or found.number < self.sent[least].number:
            raise Violation(f"the retained value of {topic} is {payload!r}; {least!r} was acknowledged")

    def missing(self) -> list[tuple[str, bytes]]:
        """What is still to come: (session or group, payload)."""
        found = []
        fits: dict[tuple[str, str], bool] = {}
        for name, followed in self.followed.items():
            for payload, sent in self.sent.items():
                if not sent.accepted or followed.since is None or sent.at < followed.since or payload in followed.got:
                    continue
                pair = followed.filter, sent.topic
                if pair not in fits:
                    fits[pair] = followed.matches(sent.topic)
                if fits[pair] and followed.wants(sent):
                    found.append((name, payload))
        return found

    @property
    def summary(self) -> Mapping[str, int]:
        accepted = sum(sent.accepted for sent in self.sent.values())
        return {
            "kills": self.kills, "published": len(self.sent), "acknowledged": accepted,
            "published again": sum(self.written.values()) - len(self.written), "deliveries": self.deliveries,
            "delivered again": self.redeliveries, "acknowledged by subscribers": len(self.settled),
            "lost with a kill at most": self.unsettled,
        }  # fmt: skip
