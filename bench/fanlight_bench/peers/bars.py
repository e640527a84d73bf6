"""The bars: what Fanlight is to reach beside its peers, and what one comparison reached.

Nearly all are ratios between figures of the same interleaved runs, so that they hold on any machine. Absolute ones
(idle connections, subscriptions, connects) are those of the machine that the bars were set on, two processors of an
AMD Zen 4. All speak of processor time a delivery unless they say otherwise. A bar whose figure was not measured is
named, not passed over.
"""

from collections.abc import Iterator

from fanlight_bench.peers.bar import EITHER, Bar, less, lost
from fanlight_bench.peers.contenders import PEERS
from fanlight_bench.peers.limits import limits
from fanlight_bench.peers.results import Figured, Report, ratio

KIB = 1024

# Letter -> the factor by which processor time per delivery must be below that of nats-server on one processor.
TO_NATS = {"A": 2.0, "C": 2.0, "C100k": 2.0, "CX": 2.0, "G": 2.0, "B": 1.3, "H": 1.4}
AHEAD = ("A", "C", "C100k", "CX", "G")  # in deliveries a second, too
TO_MOSQUITTO = {"A": 10, "B": 10, "C": 10, "C100k": 10, "CX": 10, "G": 10, "B1": 2, "H": 2, "D": 5,
                "AT": 1, "B1T": 1}


def bars(report: Report) -> list[Bar]:
    """All of them, met or not."""
    figured = Figured(report)
    groups = (_nats, _mosquitto, _best, _mqtt5, _selectors, _scale, limits)
    return [bar for group in groups for bar in group(figured)]


def _nats(figured: Figured) -> Iterator[Bar]:
    for letter, least in TO_NATS.items():
        for ours in EITHER:
            yield Bar(letter, ours, "less than NATS on one processor", least, False, "x",
                      less(figured, letter, ours, "nats-1cpu"))  # fmt: skip
            if letter in AHEAD:
                rates = [figured(letter, name, "deliveries_per_second") for name in (ours, "nats-1cpu")]
                yield Bar(letter, ours, "deliveries/s, to NATS on one processor", 1.0, False, "x", ratio(*rates))


def _mosquitto(figured: Figured) -> Iterator[Bar]:
    for letter, least in TO_MOSQUITTO.items():
        for ours in EITHER:
            yield Bar(letter, ours, "less than Mosquitto", least, False, "x",
                      less(figured, letter, ours, "mosquitto"))  # fmt: skip
    yield Bar("Q2", "fanlight-mqtt", "less than Mosquitto", 1.0, False, "x",
              less(figured, "Q2", "fanlight-mqtt", "mosquitto"))  # fmt: skip


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


def _selectors(figured: Figured) -> Iterator[Bar]:
    figure = "us_per_message"
    for ours in ("fanlight-native", "fanlight-mqtt5"):
        cost = {letter: figured(letter, ours, figure) for letter in ("K", "KR", "KX", "KXR")}
        yield Bar("K", ours, "a message, 1,000 selectors of its topic", 5, True, "µs", cost["K"])
        yield Bar("K", ours, "less than evaluating each selector", 6, False, "x", ratio(cost["KR"], cost["K"]))
        yield Bar("KX", ours, "to evaluating each selector", 1.3, True, "x", ratio(cost["KX"], cost["KXR"]))


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
        yield Bar("R", name, "throughput lost under churn", 20, True, "%", lost(kept))
        kept = ratio(figured("W", name, "messages_per_second"), figured("W0", name, "messages_per_second"))
        yield Bar("W", name, "throughput of the others lost to one slow subscriber", 2, True, "%", lost(kept))

