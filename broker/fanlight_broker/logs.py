"""Logs: one event a line, as text on a terminal and as JSON elsewhere.

    logs.configure(format="auto", level="info")
    logs.get("net").info("slow_consumer", connection=7, client="feed", policy="drop_oldest")

An event has a name and keys; `timestamp`, `level`, `logger`, `event` come first. The standard library's
logging (aiohttp, asyncio, warnings) is handled in the same way. Three things are bounded, and reported when a bound is
reached: how often one kind of event is written, how many lines wait for a slow reader, and how long a value is. The
first is asked before anything is made of an event: in a storm of connections nearly all are left out. A reader that
stops blocks neither the broker nor its loop: a separate thread writes the lines.

Payloads and passwords are not logged; the value of a key with such a name is left out.
"""

import json
import logging
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from fanlight_broker import event_log

STDOUT: Final = 1
BURST_SECONDS: Final = 10.0
KIND_CHARACTERS_MAX: Final = 200
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

Event = dict[str, Any]
get: Final = event_log.get


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
    global _log
    close()
    terminal = os.isatty(fd)
    text = format == "text" or (format == "auto" and terminal)
    colours = terminal and not os.environ.get("NO_COLOR")
    render = _Text(colours).render if text else _json
    _log = _Log(_LineWriter(fd, queue_max), RateLimit(burst_max), render, _LEVELS[level])
    logging.basicConfig(handlers=[_Handler(_log)], level=level.upper(), force=True)
    logging.captureWarnings(True)
    event_log.use(_log)


def reconfigure(*, level: str, burst_max: int) -> None:
    """Apply the settings that a reload can change."""
    logging.getLogger().setLevel(level.upper())
    if _log is not None:
        _log.level = _LEVELS[level]
        _log.limit.burst = burst_max


def counters() -> dict[str, int]:
    """What has been logged and left out since `configure`; COUNTERS says what each is."""
    if _log is None:
        return dict.fromkeys(COUNTERS, 0)
    return {
        "log_lines": _log.lines,
        "log_lines_suppressed": _log.limit.suppressed,
        "log_lines_dropped": _log.writer.dropped,
    }


def close() -> None:
    """Report suppressed lines that were not reported yet, and write waiting lines, for at most CLOSE_SECONDS."""
    global _log
    log, _log = _log, None
    if log is None:
        return
    if unreported := log.limit.unreported():
        log.limit = RateLimit(1)
        get("logs").warning("log_lines_suppressed", kinds=unreported)
    event_log.use(None)
    logging.captureWarnings(False)
    for handler in logging.getLogger().handlers[:]:
        if isinstance(handler, _Handler):
            logging.getLogger().removeHandler(handler)
    log.writer.close()


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
        now = self._clock()
        window = self._kinds.get(kind)
        if window is None:
            if len(self._kinds) >= KINDS_MAX:
                kind = "(others)"
            window = self._kinds.setdefault(kind, [now, 0, 0])
        if now - window[0] >= self._seconds:
            window[0], window[1] = now, 0
        if window[1] >= self.burst:
            window[2] += 1
            self.suppressed += 1
            return None
        window[1] += 1
        unreported, window[2] = int(window[2]), 0
        return unreported

    def unreported(self) -> dict[str, int]:
        """By kind, what was suppressed with no later line to say so."""
        return {kind: int(window[2]) for kind, window in self._kinds.items() if window[2]}


class _Log:
    """The sink of all events, and of the standard library's records: from an event to a line. Any thread calls it."""

    def __init__(
        self, writer: "_LineWriter", limit: RateLimit, render: Callable[[Event], str], level: int
    ) -> None:
        self.writer = writer
        self.limit = limit
        self.level = level
        self.lines = 0
        self._render = render
        self._lock = threading.Lock()

    def write(self, level: int, logger: str, event: str, keys: Event) -> None:
        with self._lock:
            suppressed = self.limit.admit(f"{logger}:{event}"[:KIND_CHARACTERS_MAX])
        if suppressed is not None:
            self.put(level, logger, event, keys, suppressed)

    def admit(self, logger: str, kind: object) -> int | None:
        """As RateLimit.admit."""
        with self._lock:
            return self.limit.admit(f"{logger}:{kind}"[:KIND_CHARACTERS_MAX])

    def put(self, level: int, logger: str, event: str, keys: Event, suppressed: int) -> None:
        """Write the line of an admitted event. An event that cannot be shown is one error line of its own."""
        try:
            line = self._render(_presentable(level, logger, event, keys, suppressed))
        except Exception as error:  # a value whose repr raises
            reason = {"of": event, "reason": f"{type(error).__name__} in a value"}
            line = self._render(_presentable(logging.ERROR, "logs", "event_unshown", reason, 0))
        self.lines += 1
        self.writer.put(line)


class _Handler(logging.Handler):
    """The standard library's records. `logging.Handler` holds a lock around `emit`."""

    def __init__(self, log: _Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        # The kind of a library's message is its unformatted text.
        suppressed = self._log.admit(record.name, record.msg)
        if suppressed is None:
            return
        try:
            message = record.getMessage()
        except Exception:
            self.handleError(record)
            return
        keys = {"exc_info": record.exc_info[1]} if record.exc_info else {}
        self._log.put(record.levelno, record.name, message, keys, suppressed)


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


# From an event to a line.


def _json(event: Event) -> str:
    return json.dumps(event, default=repr)


class _Text:
    """Lines for people: time, level, name, logger, keys; a traceback on lines of its own.

        2026-11-23T02:02:43.880117Z [info     ] listening                      [net] port=7420 host=127.0.0.1
    """

    COLOURS: Final = {"debug": "32", "info": "32", "warning": "33", "error": "31", "critical": "31"}
    QUOTED: Final = frozenset(" \t=\r\n\"'")  # a text with one of these is shown as its repr

    def __init__(self, colours: bool) -> None:
        self._colours = colours

    def render(self, event: Event) -> str:
        paint, level = self._paint, event["level"]
        parts = [
            paint("2", event["timestamp"]),
            f"[{paint('1;' + self.COLOURS.get(level, '1'), f'{level:<9}')}]",
            paint("1", f"{event['event']:<30}"),
            f"[{paint('1;34', event['logger'])}]",
        ]
        rest = list(event.items())[len(FIRST):]
        parts += [f"{paint('36', key)}={paint('35', self._value(value))}" for key, value in rest if key != "exception"]
        line = " ".join(parts)
        return f"{line}\n{event['exception']}" if "exception" in event else line

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colours else text

    def _value(self, value: object) -> str:
        return value if isinstance(value, str) and not self.QUOTED & set(value) else repr(value)




def _presentable(level: int, logger: str, event: str, keys: Event, suppressed: int) -> Event:
    """Keys in order; values without secrets, bounded, and unable to forge a line or to drive a terminal."""
    shown: Event = {
        "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "level": logging.getLevelName(level).lower(),
        "logger": present("logger", logger),
        "event": present("event", event),
    }
    for key, value in keys.items():
        if key != "exc_info":
            shown[key] = present(key, value)
    if suppressed:
        shown["suppressed"] = suppressed
    if (error := keys.get("exc_info")) is not None:
        error = sys.exc_info()[1] if error is True else error
        shown["exception"] = present("exception", "".join(traceback.format_exception(error)).rstrip("\n"))
    return shown


def present(key: str, value: object) -> object:
    """A value as a log may show it: without secrets, bounded, and printable."""
    if key.lower() in PRIVATE:
        return "(left out)"
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, dict):
        return {str(name): present(str(name), value[name]) for name in list(value)[:ITEMS_MAX]}
    if isinstance(value, (list, tuple)):
        return [present(key, each) for each in value[:ITEMS_MAX]]
    if key in ("exception", "stack"):
        return _printable(str(value), TRACEBACK_CHARACTERS_MAX, keep="\n")
    return _printable(value if isinstance(value, str) else str(value), VALUE_CHARACTERS_MAX)


def _printable(text: str, most: int, keep: str = "") -> str:
    if len(text) > most:
        text = f"{text[:most]}... ({len(text)} characters)"
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else repr(each)[1:-1] for each in text)


_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_log: _Log | None = None
