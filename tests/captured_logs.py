"""The events that the broker reports, for a test to look at; or none of them, where they are only noise."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fanlight_broker import event_log


class Capture:
    """A sink that keeps all events: their name, `log_level`, and keys."""

    level = event_log.DEBUG

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, level: int, logger: str, event: str, keys: dict[str, Any]) -> None:
        self.events.append({**keys, "event": event, "log_level": logging.getLevelName(level).lower()})


class Silence:
    """A sink that takes nothing."""

    level = event_log.ERROR + 1

    def write(self, level: int, logger: str, event: str, keys: dict[str, Any]) -> None:
        raise AssertionError("an event below the level")


@contextmanager
def capture_logs() -> Iterator[list[dict[str, Any]]]:
    """The events that are reported inside."""
    capture = Capture()
    before = event_log.use(capture)
    try:
        yield capture.events
    finally:
        event_log.use(before)


@contextmanager
def silence() -> Iterator[None]:
    """Inside no event is written."""
    before = event_log.use(Silence())
    try:
        yield
    finally:
        event_log.use(before)
