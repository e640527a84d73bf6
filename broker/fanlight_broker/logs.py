"""Logs: one event a line, as text on a terminal and as JSON elsewhere.

    logs.configure(format="auto", level="info")
    logs.get("net").info("slow_consumer", connection=7, client="feed", policy="drop_oldest")

An event has a name and keys; `timestamp`, `level`, `logger`, `event` come first. The standard library's
logging (aiohttp, asyncio, warnings) is handled in the same way. Three things are bounded, and reported when a bound is
reached: how often one kind of event is written, how many lines wait for a slow reader, and how long a value is. A
reader that stops blocks neither the broker nor its loop: a separate thread writes the lines.

Payloads and passwords are not logged; the value of a key with such a name is left out.
"""

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final

import structlog

STDOUT: Final = 1
BURST_SECONDS: Final = 10.0
KINDS_MAX: Final = 1_000  # kinds of events that are distinguished; the broker has about 50, libraries a few more
VALUE_CHARACTERS_MAX: Final = 1_000  # a topic may have 65,535
TRACEBACK_CHARACTERS_MAX: Final = 16_000
ITEMS_MAX: Final = 50  # of a list or mapping given as a value
CLOSE_SECONDS: Final = 2.0  # to wait for a reader that may not exist any more

PRIVATE: Final = frozenset({"authorization", "headers", "password", "payload", "secret", "token"})
FIRST: Final = ("timestamp", "level", "logger", "event")

COUNTERS: Final[Mapping[str, str]] = {
    "log_lines": "Lines handed to the log",
    "log_lines_suppressed": "Lines left out because their kind came too often (log_burst_max)",
    "log_lines_dropped": "Lines lost because the log's reader was too slow (log_queue_max) or gone",
}

Event = MutableMapping[str, Any]
get: Callable[[str], structlog.stdlib.BoundLogger] = structlog.stdlib.get_logger


def configure(
    *,
    format: str = "auto",
    level: str = "info",
    burst_max: int = 50,
    queue_max: int = 10_000,
    fd: int = STDOUT,
) -> None:
    """Send all logging to the file descriptor `fd`. Call `close` at the end, or the last lines may be lost.

    Args:
        format: "text", "json", or "auto": text if `fd` is a terminal.
        level: "debug", "info", "warning" or "error".
        burst_max: lines of one kind in BURST_SECONDS.
        queue_max: lines that may wait for the reader.
    """
    global _handler
    close()
    terminal = os.isatty(fd)
    text = format == "text" or (format == "auto" and terminal)
    colours = terminal and not os.environ.get("NO_COLOR")
    _handler = _Handler(_LineWriter(fd, queue_max), RateLimit(burst_max))
    _handler.setFormatter(_formatter(text, colours))
    logging.basicConfig(handlers=[_handler], level=level.upper(), force=True)
    logging.captureWarnings(True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,  # a logger made at import must use a later configuration
    )


def reconfigure(*, level: str, burst_max: int) -> None:
    """Apply the settings that a reload can change."""
    logging.getLogger().setLevel(level.upper())
    if _handler is not None:
        _handler.limit.burst = burst_max


def counters() -> dict[str, int]:
    """What has been logged and left out since `configure`; COUNTERS says what each is."""
    if _handler is None:
        return dict.fromkeys(COUNTERS, 0)
    return {
        "log_lines": _handler.lines,
        "log_lines_suppressed": _handler.limit.suppressed,
        "log_lines_dropped": _handler.writer.dropped,
    }


def close() -> None:
    """Report suppressed lines that were not reported yet, and write waiting lines, for at most CLOSE_SECONDS."""
    global _handler
    handler, _handler = _handler, None
    if handler is None:
        return
    if untold := handler.limit.untold():
        handler.limit = RateLimit(1)
        get("logs").warning("log_lines_suppressed", kinds=untold)
    logging.captureWarnings(False)
    logging.getLogger().removeHandler(handler)
    handler.close()


class RateLimit:
    """At most `burst` events of one kind in a window of `seconds`; others are counted, by kind and in all."""

    def __init__(
        self, burst: int, seconds: float = BURST_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.burst = burst
        self.suppressed = 0  # in all
        self._seconds = seconds
        self._clock = clock
        self._kinds: dict[str, list[float]] = {}  # kind -> [start of its window, admitted, suppressed]

    def admit(self, kind: str) -> int | None:
        """None if this event must not be written, else how many of its kind were not since the last."""
        if kind not in self._kinds and len(self._kinds) >= KINDS_MAX:
            kind = "(others)"
        now = self._clock()
        window = self._kinds.setdefault(kind, [now, 0, 0])
        if now - window[0] >= self._seconds:
            window[0], window[1] = now, 0
        if window[1] >= self.burst:
            window[2] += 1
            self.suppressed += 1
            return None
        window[1] += 1
        untold, window[2] = int(window[2]), 0
        return untold

    def untold(self) -> dict[str, int]:
        """By kind, what was suppressed with no later line to say so."""
        return {kind: int(window[2]) for kind, window in self._kinds.items() if window[2]}


class _Handler(logging.Handler):
    """From a record to a line. `logging.Handler` holds a lock around `emit`."""

    def __init__(self, writer: "_LineWriter", limit: RateLimit) -> None:
        super().__init__()
        self.writer = writer
        self.limit = limit
        self.lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        # The kind of a library's message is its unformatted text.
        kind = record.msg.get("event") if isinstance(record.msg, dict) else record.msg
        suppressed = self.limit.admit(f"{record.name}:{kind}"[:200])
        if suppressed is None:
            return
        record.suppressed = suppressed
        try:
            line = self.format(record)
        except Exception:
            self.handleError(record)
            return
        self.lines += 1
        self.writer.put(line)

    def close(self) -> None:
        self.writer.close()
        super().close()


class _LineWriter:
    """A bounded queue of lines, and a thread that writes them to a file descriptor which may block."""

    def __init__(self, fd: int, queue_max: int) -> None:
        self.dropped = 0
        self._fd = fd
        self._lines: queue.Queue[str | None] = queue.Queue(queue_max)
        # A daemon, so that a reader that stops cannot prevent the process from ending; os.write, because such a
        # thread would keep the lock of sys.stdout.
        self._thread = threading.Thread(target=self._run, name="log writer", daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        try:
            self._lines.put(None, timeout=CLOSE_SECONDS)
        except queue.Full:
            return  # it is blocked; the process ends without it
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                self._write(f"{line}\n".encode(errors="backslashreplace"))
            except OSError:
                self.dropped += 1  # the reader does not exist any more

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._fd, data) :]


# Processors: from an event to a line.


def _formatter(text: bool, colours: bool) -> logging.Formatter:
    renderer: Any
    if text:
        renderer = structlog.dev.ConsoleRenderer(
            colors=colours, sort_keys=False, exception_formatter=structlog.dev.plain_traceback
        )
    else:
        renderer = structlog.processors.JSONRenderer(default=repr)
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, structlog.stdlib.add_log_level],
        processors=[
            _tell_suppressed,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _presentable,
            renderer,
        ],
    )


def _tell_suppressed(_: object, __: str, event: Event) -> Event:
    if suppressed := getattr(event["_record"], "suppressed", 0):
        event["suppressed"] = suppressed
    return event


def _presentable(_: object, __: str, event: Event) -> Event:
    """Keys in order; values without secrets, bounded, and unable to forge a line or to drive a terminal."""
    ordered = [*(key for key in FIRST if key in event), *(key for key in event if key not in FIRST)]
    return {key: _present(key, event[key]) for key in ordered}


def _present(key: str, value: object) -> object:
    if key.lower() in PRIVATE:
        return "(left out)"
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, dict):
        return {str(name): _present(str(name), value[name]) for name in list(value)[:ITEMS_MAX]}
    if isinstance(value, (list, tuple)):
        return [_present(key, each) for each in value[:ITEMS_MAX]]
    if key in ("exception", "stack"):
        return _printable(str(value), TRACEBACK_CHARACTERS_MAX, keep="\n")
    return _printable(value if isinstance(value, str) else str(value), VALUE_CHARACTERS_MAX)


def _printable(text: str, most: int, keep: str = "") -> str:
    if len(text) > most:
        text = f"{text[:most]}... ({len(text)} characters)"
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else repr(each)[1:-1] for each in text)


_handler: _Handler | None = None
