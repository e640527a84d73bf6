"""/metrics: the broker's metrics in the Prometheus exposition formats.

The hot path keeps its counters in C. They are read here for each request, and kept nowhere else.

The names follow Prometheus' conventions. A counter ends in _total, a unit comes last, and metrics that differ only in
reason, protocol or listener are one family with a label. /stats has the same metrics under their plain names.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.core.metrics import MetricFamily

HELP: Final = {
    "messages_dropped": "Messages that a subscriber did not get, by the reason; docs/metrics.md says what each means",
    "archive_messages_dropped": "Messages that did not get into the archive, by the reason",
}
# Counters that are one family: its name and the reason. Those that begin with dropped_ are, too.
REASONS: Final = {
    "messages_expired": ("messages_dropped", "expired"),
    "archive_dropped": ("archive_messages_dropped", "buffer_full"),
    "archive_unspellable": ("archive_messages_dropped", "unspellable"),
    "archive_lost": ("archive_messages_dropped", "lost"),
}
DROPPED: Final = "dropped_"
RENAMED: Final = {"connections": "clients"}  # those through their handshake; `connections` has labels
MILLISECONDS: Final = "_ms"  # counters are whole numbers; Prometheus wants seconds
LEFT_OUT: Final = frozenset({"uptime_seconds"})  # process_start_time_seconds is Prometheus' own


class MetricsCollector(Collector):
    """Counters as fanlight_<name>_total, some with labels; gauges as fanlight_<name>."""

    def __init__(self, sources: Sequence[MetricSource], version: str) -> None:
        self._sources = tuple(sources)
        self._version = version

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("fanlight_build", "The program that runs", {"version": self._version})
        labelled = [family for part in self._sources for family in part.families()]
        replaced = LEFT_OUT.union(*(family.replaces for family in labelled))
        grouped: dict[str, CounterMetricFamily] = {}
        for part in self._sources:
            for name, count in part.counters().items():
                family, reason = _reason_of(name)
                if family:
                    _add(grouped, family, HELP[family], reason, count)
                elif name.endswith(MILLISECONDS):
                    seconds, help = name.removesuffix(MILLISECONDS), part.help.get(name, name)
                    help = help.replace("Milliseconds", "Seconds")
                    yield CounterMetricFamily(f"fanlight_{seconds}_seconds", help, value=count / 1000)
                elif name not in replaced:
                    yield CounterMetricFamily(f"fanlight_{name}", part.help.get(name, name), value=count)
            for name, counts in part.reasons().items():
                for reason, count in counts.items():
                    _add(grouped, name, part.help.get(name, name), reason, count)
            for name, value in part.gauges().items():
                if name not in replaced:
                    yield GaugeMetricFamily(
                        f"fanlight_{RENAMED.get(name, name)}", part.help.get(name, name), value=value
                    )
        yield from grouped.values()
        yield from map(_metric, labelled)


def _reason_of(name: str) -> tuple[str, str]:
    if name.startswith(DROPPED):
        return "messages_dropped", name.removeprefix(DROPPED)
    return REASONS.get(name, ("", ""))


def _add(grouped: dict[str, CounterMetricFamily], name: str, help: str, reason: str, count: int) -> None:
    if name not in grouped:
        grouped[name] = CounterMetricFamily(f"fanlight_{name}", help, labels=["reason"])
    grouped[name].add_metric([reason], count)


def _metric(family: MetricFamily) -> Metric:
    name = f"fanlight_{family.name}"
    if family.kind == "histogram":
        buckets = [("+Inf" if bound == inf else str(float(bound)), float(count)) for bound, count in family.buckets]
        return HistogramMetricFamily(name, family.help, buckets=buckets, sum_value=family.sum)
    labels: Mapping[str, str] = family.samples[0][0] if family.samples else {}
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = kind(name, family.help, labels=list(labels))
    for values, number in family.samples:
        metric.add_metric([_label(value) for value in values.values()], number)
    return metric


def _label(value: str) -> str:
    """A user or a group may be called what no UTF-8 can say (a lone surrogate): the other metrics must not suffer."""
    return value if value.isascii() else value.encode(errors="backslashreplace").decode()


class Exposition:
    """What /metrics answers: the broker's metrics, and the process's memory, CPU time and file descriptors."""

    def __init__(self, sources: Sequence[MetricSource], version: str) -> None:
        # A registry of our own: the library's default one is shared with whatever else runs in the process.
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(MetricsCollector(sources, version))
        ProcessCollector(registry=self._registry)

    def render(self, accept: str) -> tuple[bytes, str]:
        """The text and its content type, in the format that the Accept header asks for."""
        try:
            encode, content_type = choose_encoder(accept)
        except (TypeError, ValueError):  # an invalid version
            encode, content_type = choose_encoder("")
        return encode(self._registry), content_type
