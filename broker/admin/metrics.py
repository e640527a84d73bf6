"""/metrics: the broker's figures in the Prometheus exposition formats.

The hot path keeps its counters in C; they are read here, when a scraper asks, and kept nowhere else.
"""

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from broker.admin.figures import Figures


class FiguresCollector(Collector):
    """Counters as fanlight_<name>_total, some with the label `reason`; gauges as fanlight_<name>."""

    def __init__(self, figures: Sequence[Figures], version: str) -> None:
        self._figures = tuple(figures)
        self._version = version

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("fanlight_build", "The program that runs", {"version": self._version})
        for part in self._figures:
            for name, count in part.counters().items():
                yield CounterMetricFamily(f"fanlight_{name}", part.help.get(name, name), value=count)
            for name, counts in part.reasons().items():
                family = CounterMetricFamily(f"fanlight_{name}", part.help.get(name, name), labels=["reason"])
                for reason, count in counts.items():
                    family.add_metric([reason], count)
                yield family
            for name, value in part.gauges().items():
                yield GaugeMetricFamily(f"fanlight_{name}", part.help.get(name, name), value=value)


class Exposition:
    """What /metrics answers: the figures, and the process's memory, CPU time and file descriptors."""

    def __init__(self, figures: Sequence[Figures], version: str) -> None:
        # A registry of our own: the library's default one is shared with whatever else runs in the process.
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(FiguresCollector(figures, version))
        ProcessCollector(registry=self._registry)

    def render(self, accept: str) -> tuple[bytes, str]:
        """The text and its content type, in the format that the Accept header asks for."""
        try:
            encode, content_type = choose_encoder(accept)
        except (TypeError, ValueError):  # a version that is none
            encode, content_type = choose_encoder("")
        return encode(self._registry), content_type
