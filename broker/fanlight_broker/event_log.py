"""Events, as all modules of the broker report them: a name, and keys with values.

    log: Final = event_log.get("net")
    log.info("slow_consumer", connection=7, client="feed", policy="drop_oldest")

Here is only what a caller needs, so that a module of any layer can report an event and imports nothing for it. Lines
are made by the sink in use, which logs.py sets. Without one, warnings and errors go to the standard library's logging.
"""

import logging
import sys
from typing import Any, Final, Protocol

DEBUG: Final = logging.DEBUG
INFO: Final = logging.INFO
WARNING: Final = logging.WARNING
ERROR: Final = logging.ERROR

Keys = dict[str, Any]


class EventSink(Protocol):
    """Takes the events of all loggers, from any thread."""

    @property
    def level(self) -> int:
        """Events below it are not passed to `write`."""
        ...

    def write(self, level: int, logger: str, event: str, keys: Keys) -> None:
        """Take one event. `exc_info` among the keys is an exception, or True for the one that is being handled."""


class _Library:
    """The sink of a process that set none, such as a test: the standard library's logging."""

    level = WARNING

    def write(self, level: int, logger: str, event: str, keys: Keys) -> None:
        shown = {key: value for key, value in keys.items() if key != "exc_info"}
        logging.getLogger(logger).log(level, "%s %s", event, shown, exc_info=keys.get("exc_info"))


class Logger:
    """The events of one part of the broker."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def debug(self, event: str, /, **keys: Any) -> None:
        if _sink.level <= DEBUG:
            _sink.write(DEBUG, self.name, event, keys)

    def info(self, event: str, /, **keys: Any) -> None:
        if _sink.level <= INFO:
            _sink.write(INFO, self.name, event, keys)

    def warning(self, event: str, /, **keys: Any) -> None:
        if _sink.level <= WARNING:
            _sink.write(WARNING, self.name, event, keys)

    def error(self, event: str, /, **keys: Any) -> None:
        if _sink.level <= ERROR:
            _sink.write(ERROR, self.name, event, keys)

    def exception(self, event: str, /, **keys: Any) -> None:
        """An error, with the traceback of the exception that is being handled."""
        if _sink.level <= ERROR:
            _sink.write(ERROR, self.name, event, {**keys, "exc_info": sys.exc_info()[1]})


def get(name: str) -> Logger:
    """A logger. It uses the sink in use at the time of each event, so it may be made at import."""
    return Logger(name)


def use(sink: EventSink | None) -> EventSink:
    """Set the sink of all loggers, None for the standard library's logging. Returns the sink that was in use."""
    global _sink
    before, _sink = _sink, sink if sink is not None else _Library()
    return before


_sink: EventSink = _Library()
