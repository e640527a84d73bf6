"""A source of metrics: the counters and gauges of one part of the broker, with what each one means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fanlight_broker.core.metrics import MetricFamily


@dataclass(frozen=True, slots=True)
class MetricSource:
    """What is read when somebody asks; `help` says what each name means.

    reasons  counters that are several, one for each reason there was: name -> reason -> count. A part has so many
             reasons as its protocol has codes, no matter what peers send
    families what only /metrics shows: metrics with labels, and histograms
    """

    help: Mapping[str, str]
    counters: Callable[[], Mapping[str, int]] = dict
    gauges: Callable[[], Mapping[str, float]] = dict
    reasons: Callable[[], Mapping[str, Mapping[str, int]]] = dict
    families: Callable[[], Sequence[MetricFamily]] = tuple
