"""The bars of the rows about limits: topics beyond what is remembered, changes that matter, those who do not read.

Each compares a row that is hard for a broker that remembers with the row that flatters it, or with NATS on one
processor, in the same run.
"""

from collections.abc import Iterator

from fanlight_bench.peers.bar import EITHER, Bar, lost
from fanlight_bench.peers.plan import ASKED, POLICIES
from fanlight_bench.peers.results import Figured, ratio

NATS = "nats-1cpu"
NULL = {"fanlight-native": "null-native", "fanlight-mqtt": "null-mqtt"}
MIB = 1 << 20
COST = "us_per_delivery"
WARM = {"T70k": "T1k", "T1M": "T1k", "CX100k": "CX"}  # more topics -> the same with those that are remembered
OUTBOXES_BYTES = 1024 * MIB                           # what all connections may keep together: outboxes_bytes_max


def limits(figured: Figured) -> Iterator[Bar]:
    """All of them, met or not."""
    yield from _topics(figured)
    yield from _changes(figured)
    yield from _stalled(figured)
    yield from _one_at_a_time(figured)
    ours = "fanlight-mqtt"
    yield Bar("P", ours, "to the same not retained", 3, True, "x",
              ratio(figured("P", ours, COST), figured("P0", ours, COST)))  # fmt: skip
    yield Bar("Q2", ours, "to QoS 1", 3, True, "x", ratio(figured("Q2", ours, COST), figured("D", ours, COST)))
    figure = "broker_us_per_connect"
    for name in EITHER:
        yield Bar("AM", name, "to one topic", 1.5, True, "x",
                  ratio(figured("AM", name, COST), figured("A", name, COST)))  # fmt: skip
        yield Bar("H", name, "to the null broker", 1.3, True, "x",
                  ratio(figured("H", name, COST), figured("H", NULL[name], COST)))  # fmt: skip
        yield Bar("LT", name, "the pause of another client", 2, True, "ms", figured("LT", name, "pause_ms"))
        yield Bar("S", name, "a connect and its end, to NATS on one processor", 1, True, "x",
                  ratio(figured("S", name, figure), figured("S", NATS, figure)))  # fmt: skip
    yield Bar("A", ours, "from the start to listening", 0.3, True, "s", figured("A", ours, "start_seconds"))
    yield Bar("A", ours, "memory at rest", 45 * MIB, True, "B", figured("A", ours, "resting_bytes"))


def _topics(figured: Figured) -> Iterator[Bar]:
    for name in EITHER:
        for letter, warm in WARM.items():
            mine = figured(letter, name, COST)
            known = figured(warm, name, COST)
            yield Bar(letter, name, "to NATS on one processor", 0.8, True, "x",
                      ratio(mine, figured(letter, NATS, COST)))  # fmt: skip
            # The bar is twice the warm figure and a microsecond more.
            yield Bar(letter, name, "to twice the warm figure plus 1 µs", 1, True, "x",
                      ratio(mine, None if known is None else 2 * known + 1))  # fmt: skip
        for letter in ("CT1", "CT"):
            yield Bar(letter, name, "to NATS on one processor", 0.6, True, "x",
                      ratio(figured(letter, name, COST), figured(letter, NATS, COST)))  # fmt: skip


def _changes(figured: Figured) -> Iterator[Bar]:
    for name in EITHER:
        for letter in ("M100", "M1k", "MX10", "MX100", "SC"):
            yield Bar(letter, name, "throughput lost", 20, True, "%", lost(figured(letter, name, "throughput_kept")))
        for letter in ("M100", "M1k", "MX10", "MX100"):
            rate = "with_delivered_per_second"
            yield Bar(letter, name, "deliveries/s meanwhile, to NATS on one processor", 1, False, "x",
                      ratio(figured(letter, name, rate), figured(letter, NATS, rate)))  # fmt: skip


def _one_at_a_time(figured: Figured) -> Iterator[Bar]:
    """Small messages, one a write: below NATS and Mosquitto, both."""
    for letter, figure, what in (
        ("B1", COST, "to NATS and Mosquitto"), ("E", COST, "to NATS and Mosquitto"),
        ("E", "p50_us", "p50, to NATS and Mosquitto"),
        ("E", "p99_us", "p99, to NATS and Mosquitto"),
    ):  # fmt: skip
        peers = [value for name in (NATS, "mosquitto") if (value := figured(letter, name, figure)) is not None]
        for name in EITHER:
            yield Bar(letter, name, what, 1, True, "x", ratio(figured(letter, name, figure), min(peers, default=None)))


def _stalled(figured: Figured) -> Iterator[Bar]:
    for name in EITHER:
        policies = [letter for letter in POLICIES if name not in ASKED[letter].left_out]
        for letter, without in (("WS", "W0"), *((letter, "V0") for letter in policies)):
            # V0 and what is compared with it publish at one rate: deliveries tell.
            rate = "messages_per_second" if letter == "WS" else "deliveries_per_second"
            kept = ratio(figured(letter, name, rate), figured(without, name, rate))
            yield Bar(letter, name, "throughput of the others lost", 2, True, "%", lost(kept))
            late = ratio(figured(letter, name, "p99_us"), figured(without, name, "p99_us"))
            yield Bar(letter, name, "p99 of the others, to without", 2, True, "x", late)
        for letter in policies:
            memory, rest = (figured(letter, name, figure) for figure in ("resident_bytes", "resting_bytes"))
            more = None if memory is None or rest is None else memory - rest
            yield Bar(letter, name, "memory, to the limit of all outboxes", 1.1, True, "x", ratio(more, OUTBOXES_BYTES))
