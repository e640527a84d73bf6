"""A source of metrics: the counters and gauges of one part of the broker, with what each one means."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from fanlight_broker.core.metrics import MetricFamily


class MetricSource(NamedTuple):
    """Functions that are called for each request; `help` says what each name means.

    reasons  counters with a count for each reason: name -> reason -> count. There are at most as many reasons as the
             protocol has codes, whatever peers send
    families shown by /metrics only: metrics with labels, and histograms
    """

    help: Mapping[str, str]
    counters: Callable[[], Mapping[str, int]] = dict
    gauges: Callable[[], Mapping[str, float]] = dict
    reasons: Callable[[], Mapping[str, Mapping[str, int]]] = dict
    families: Callable[[], Sequence[MetricFamily]] = tuple
