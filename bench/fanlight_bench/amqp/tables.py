"""The report as tables in Markdown: those of docs/amqp.md."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

COLUMNS: Final = ("fanlight", "rabbitmq", "rabbitmq-one-scheduler")
NAMES: Final = ("Fanlight", "RabbitMQ", "one scheduler")
LOADS: Final = {
    "one-to-one": "one to one, automatic acknowledgement",
    "acknowledged": "one to one, prefetch 100, acknowledged by 50, confirms",
    "fan-out": "topic exchange to 100 queues, consumers ready: a delivery",
    "fan-out-stored": "the same, stored first: a message in and out of a queue",
    "durable": "durable, persistent, confirms by 100, acknowledged by 50",
    "wildcards": "100,000 wildcard bindings, 1,000 keys in turn",
    "wildcards-cold": "100,000 wildcard bindings (RabbitMQ: 10,000), keys never repeated",
    "headers": "headers exchange, 10,000 bindings, 1,000 of them met in turn",
    "headers-cold": "the same, all of them met, no two messages with the same headers",
    "headers-100": "headers exchange, 100 bindings",
}
HELD: Final = {
    "bindings": "100,000 wildcard bindings (RabbitMQ: 10,000), without answers",
    "bindings-in-turn": "the same, each after the answer to the one before",
    "ready": "1,000,000 ready messages (RabbitMQ: 300,000), transient",
    "ready-no-data": "the same, Fanlight without `data`",
    "ready-durable": "1,000,000 ready messages (RabbitMQ: 100,000), durable",
    "idle": "of 10,000 idle connections (RabbitMQ: 1,000) with a channel and a consumer, one",
}
MIB: Final = 1024 * 1024
FIGURES: Final[dict[str, tuple[str, Callable[[float], str]]]] = {
    "seconds": ("time", lambda value: f"{value:.2f} s"),
    "bytes_each": ("memory each", lambda value: f"{value:,.0f} B"),
    "drained_per_second": ("drained a second", lambda value: f"{value:,.0f}"),
    "resident_bytes": ("process with them", lambda value: f"{value / MIB:.0f} MiB"),
    "us_to_open": ("to open", lambda value: f"{value:,.0f} µs"),
}
NONE: Final = "–"


def tables(report: dict[str, Any]) -> str:
    """Processor time of each load, then what is held."""
    said = [*_table(("load", *NAMES, "ratio", "bar"), _loads(report["ratios"]))]
    if report["bars"]:
        said += ["", *_table(("held", "figure", *NAMES, "bar"), _held(report["bars"]))]
    return "\n".join(said) + "\n"


def _table(heads: Sequence[str], rows: Iterator[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _loads(ratios: dict[str, dict[str, float]]) -> Iterator[list[str]]:
    for load, figures in ratios.items():
        times = [_number(figures[name]) + " µs" if name in figures else NONE for name in COLUMNS]
        yield [LOADS[load], *times, *_compared(figures, "ratio", "bar")]
        if "rate_bar" in figures:
            rates = [f"{figures[f'{name} messages/s']:,.0f}" if f"{name} messages/s" in figures else NONE
                     for name in COLUMNS]  # fmt: skip
            yield ["the same, messages a second", *rates, *_compared(figures, "rate_ratio", "rate_bar")]
    if "fanlight" in ratios.get("headers", {}) and "fanlight" in ratios.get("headers-100", {}):
        own = ratios["headers"]["fanlight"] / ratios["headers-100"]["fanlight"]
        yield ["10,000 bindings of headers beside 100, Fanlight alone", NONE, NONE, NONE, f"{own:.2f}", "≤ 2"]


def _compared(figures: dict[str, float], ratio: str, bar: str) -> list[str]:
    if ratio not in figures:
        return [NONE, NONE]
    return [_number(figures[ratio]), f"{figures[bar]:,g}" if figures[bar] else NONE]


def _held(bars: dict[str, dict[str, dict[str, float]]]) -> Iterator[list[str]]:
    for load, figures in bars.items():
        for figure, each in figures.items():
            word, write = FIGURES[figure]
            values = [write(each[name]) if name in each else NONE for name in COLUMNS]
            bar = f"≤ {write(each['most'])}" if "most" in each else NONE
            if "ratio" in each:
                bar = f"{_number(each['ratio'])} times, of {each['bar']:g}"
            yield [HELD[load], word, *values, bar]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
