"""Figures: the counters and gauges of one part of the broker, with what each one means."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figures:
    """`counters()` and `gauges()` are read when somebody asks; `help` says what each name means."""

    help: Mapping[str, str]
    counters: Callable[[], Mapping[str, int]] = dict
    gauges: Callable[[], Mapping[str, float]] = dict
