"""The bars: what Fanlight is to reach beside its peers, and what one comparison reached.

Nearly all are ratios between figures of the same interleaved runs, so that they hold on any machine. Absolute ones
(idle connections, subscriptions, connects) are those of the machine that the bars were set on, two processors of an
AMD Zen 4. All speak of processor time a delivery unless they say otherwise. A bar whose figure was not measured is
named, not passed over.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fanlight_bench.peers.contenders import PEERS
from fanlight_bench.peers.results import Figured, Report, ratio

EITHER = ("fanlight-native", "fanlight-mqtt")  # the bars hold for both alike
KIB = 1024


@dataclass(frozen=True, slots=True)
class Bar:
    """One promise. `reached` None: not measured."""

    scenario: str
    whose: str  # the contender it is asked of
    what: str
    limit: float
    at_most: bool
    unit: str   # "x", "%", "B", "/s", "s"
    reached: float | None

    @property
    def met(self) -> bool | None:
        if self.reached is None:
            return None
        return self.reached <= self.limit if self.at_most else self.reached >= self.limit

    @property
    def key(self) -> str:
        """What its explanation is kept under: the same in every report."""
        return f"{self.scenario}, {self.whose}: {self.what}"


# Letter -> the factor by which processor time per delivery must be below that of nats-server on one processor.
TO_NATS = {"A": 2.0, "C": 2.0, "C100k": 2.0, "CX": 2.0, "G": 2.0, "B": 1.3, "H": 1.4}
AHEAD = ("A", "C", "C100k", "CX", "G")  # in deliveries a second, too
TO_MOSQUITTO = {"A": 10, "B": 10, "C": 10, "C100k": 10, "CX": 10, "G": 10, "B1": 2, "H": 2, "D": 5}


def bars(report: Report) -> list[Bar]:
    """All of them, met or not."""
    figured = Figured(report)
    return [*_nats(figured), *_mosquitto(figured), *_best(figured), *_mqtt5(figured), *_scale(figured)]


def _nats(figured: Figured) -> Iterator[Bar]:
    for letter, least in TO_NATS.items():
        for ours in EITHER:
            yield Bar(letter, ours, "less than NATS on one processor", least, False, "x",
                      _less(figured, letter, ours, "nats-1cpu"))  # fmt: skip
            if letter in AHEAD:
                rates = [figured(letter, name, "deliveries_per_second") for name in (ours, "nats-1cpu")]
                yield Bar(letter, ours, "deliveries/s, to NATS on one processor", 1.0, False, "x", ratio(*rates))


def _mosquitto(figured: Figured) -> Iterator[Bar]:
    for letter, least in TO_MOSQUITTO.items():
        for ours in EITHER:
            yield Bar(letter, ours, "less than Mosquitto", least, False, "x",
                      _less(figured, letter, ours, "mosquitto"))  # fmt: skip
    yield Bar("Q2", "fanlight-mqtt", "less than Mosquitto", 1.0, False, "x",
              _less(figured, "Q2", "fanlight-mqtt", "mosquitto"))  # fmt: skip


def _best(figured: Figured) -> Iterator[Bar]:
    """Within a tenth of the best peer of the same runs, whoever that is."""
    for letter, figure, what in (
        ("B1", "us_per_delivery", "to the best peer"),
        ("E", "p50_us", "p50, to the best peer"),
        ("E", "p99_us", "p99, to the best peer"),
    ):
        known = [value for peer in PEERS if (value := figured(letter, peer, figure)) is not None]
        best = min(known, default=None)
        for ours in EITHER:
            yield Bar(letter, ours, what, 1.1, True, "x", ratio(figured(letter, ours, figure), best))


def _mqtt5(figured: Figured) -> Iterator[Bar]:
    plain = figured("B", "fanlight-mqtt", "us_per_delivery")
    for letter, what in (("P5", "pass-through properties, to 3.1.1"), ("A5", "topic aliases, to 3.1.1")):
        mine = figured(letter, "fanlight-mqtt5", "us_per_delivery")
        yield Bar(letter, "fanlight-mqtt5", what, 1.3, True, "x", ratio(mine, plain))


def _scale(figured: Figured) -> Iterator[Bar]:
    ours = "fanlight-mqtt"
    for letter, what, limit, at_most, unit, figure in (
        ("F", "an idle connection, of 10,000", 6 * KIB, True, "B", "bytes_per_connection"),
        ("F", "connects a second, of clients that stay", 5_000, False, "/s", "connects_per_second"),
        ("S", "connects a second, of clients that go again", 5_000, False, "/s", "connects_per_second"),
        ("G", "a subscription, of a million", 400, True, "B", "bytes_per_subscription"),
        ("G", "a million loaded, processor time", 6, True, "s", "subscribe_cpu_seconds"),
    ):
        yield Bar(letter, ours, what, limit, at_most, unit, figured(letter, ours, figure))
    for name in EITHER:
        kept = figured("R", name, "throughput_kept")  # turns with changes and without, in one run
        yield Bar("R", name, "throughput lost under churn", 20, True, "%", _lost(kept))
        kept = ratio(figured("W", name, "messages_per_second"), figured("W0", name, "messages_per_second"))
        yield Bar("W", name, "throughput of the others lost to one slow subscriber", 2, True, "%", _lost(kept))


def _lost(kept: float | None) -> float | None:
    return None if kept is None else (1 - kept) * 100


def _less(figured: Figured, letter: str, ours: str, peer: str) -> float | None:
    """How many times less processor time a delivery takes ours."""
    return ratio(figured(letter, peer, "us_per_delivery"), figured(letter, ours, "us_per_delivery"))
