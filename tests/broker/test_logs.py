"""Logs: one event a line, without secrets, and a reader that stands still stops nobody."""

import json
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker import logs
from fanlight_broker.logs import RateLimit


class Pipe:
    """A log, and who reads it."""

    def __init__(self) -> None:
        self._reader, self.fd = os.pipe()
        self._read = bytearray()
        self._thread = threading.Thread(target=self._run)

    def read(self) -> None:
        """Begin to read."""
        self._thread.start()

    def _run(self) -> None:
        while data := os.read(self._reader, 65_536):
            self._read += data

    def lines(self) -> list[str]:
        """All that was logged; ends the log."""
        logs.close()
        os.close(self.fd)
        if self._thread.ident is None:  # not begun; it may have begun and, with the pipe closed, be at its end
            self.read()
        self._thread.join(10)
        os.close(self._reader)
        return self._read.decode().splitlines()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines()]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    level, handlers = logging.root.level, logging.root.handlers[:]
    yield Pipe()
    logs.close()
    logging.root.setLevel(level)
    logging.root.handlers[:] = handlers


def test_an_event_is_one_json_object_a_line_with_the_standard_keys_first(pipe: Pipe) -> None:
    logs.configure(fd=pipe.fd)
    logs.get("net").warning("slow_consumer", connection=7, client="feed")
    (event,) = pipe.events()
    assert list(event) == ["timestamp", "level", "logger", "event", "connection", "client"]
    assert event["timestamp"].endswith("Z")
    del event["timestamp"]
    assert event == {
        "level": "warning", "logger": "net", "event": "slow_consumer", "connection": 7, "client": "feed",
    }  # fmt: skip


def test_text_is_for_people_and_has_no_colours_where_there_is_no_terminal(pipe: Pipe) -> None:
    logs.configure(format="text", fd=pipe.fd)
    logs.get("net").info("listening", port=7420)
    logs.get("net").error("failed", why="it's full", advice="", at=None)
    first, second = pipe.lines()
    stamp, line = first.split(" ", 1)
    assert datetime.fromisoformat(stamp).tzinfo is not None
    assert line == "[info     ] listening                      [net] port=7420"
    assert second.endswith("""Z [error    ] failed                         [net] why="it's full" advice= at=None""")


def test_on_a_terminal_auto_is_text() -> None:
    controller, terminal = os.openpty()
    try:
        logs.configure(fd=terminal)
        logs.get("net").info("listening")
        logs.close()
        line = os.read(controller, 4096)
        assert b"\x1b[1mlistening  " in line
        assert b"[\x1b[1;32minfo     \x1b[0m]" in line
    finally:
        os.close(controller)
        os.close(terminal)


def test_the_standard_librarys_logging_goes_the_same_way(pipe: Pipe) -> None:
    logs.configure(fd=pipe.fd)
    logging.getLogger("aiohttp.server").error("bad %s", "request")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old way", DeprecationWarning, stacklevel=1)
    first, second = pipe.events()
    assert (first["logger"], first["level"], first["event"]) == ("aiohttp.server", "error", "bad request")
    assert (second["logger"], "old way" in second["event"]) == ("py.warnings", True)


def test_the_level_holds_and_can_be_changed_for_loggers_that_exist(pipe: Pipe) -> None:
    logger = logs.get("net")
    logs.configure(level="warning", fd=pipe.fd)
    logger.info("unheard")
    logs.reconfigure(level="debug", burst_max=50)
    logger.debug("heard")
    assert [event["event"] for event in pipe.events()] == ["heard"]


def test_a_traceback_is_one_line_of_json(pipe: Pipe) -> None:
    logs.configure(fd=pipe.fd)
    try:
        raise RuntimeError("for the test")
    except RuntimeError:
        logs.get("net").exception("failed")
    (event,) = pipe.events()
    assert event["exception"].startswith("Traceback")
    assert event["exception"].endswith("RuntimeError: for the test")


def test_a_traceback_is_below_its_line_of_text(pipe: Pipe) -> None:
    logs.configure(format="text", fd=pipe.fd)
    try:
        raise RuntimeError("for the test")
    except RuntimeError as error:
        logs.get("net").error("failed", exc_info=error, path="/x")
        logging.getLogger("library").exception("worse")
    lines = pipe.lines()
    assert lines[0].endswith("failed                         [net] path=/x")
    assert lines.count("Traceback (most recent call last):") == lines.count("RuntimeError: for the test") == 2


def test_a_value_that_cannot_be_shown_is_a_line_of_its_own_and_no_error_for_the_caller(pipe: Pipe) -> None:
    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError("for the test")

    logs.configure(fd=pipe.fd)
    logs.get("net").info("hello", odd=Odd())
    (event,) = pipe.events()
    assert (event["event"], event["of"], event["reason"]) == ("event_unshown", "hello", "RuntimeError in a value")


def test_an_event_that_comes_too_often_is_not_made_into_a_line(pipe: Pipe) -> None:
    made = []

    class Counted:
        def __str__(self) -> str:
            made.append(self)
            return "shown"

    logs.configure(fd=pipe.fd, burst_max=2)
    for _ in range(5):
        logs.get("net").info("connected", client=Counted())
    assert len(made) == 2
    assert [event["event"] for event in pipe.events()] == ["connected", "connected", "log_lines_suppressed"]


def test_without_a_configuration_warnings_reach_the_standard_librarys_logging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logs.get("net").info("unheard")
    logs.get("net").warning("slow_consumer", client="feed")
    assert [record.getMessage() for record in caplog.records] == ["slow_consumer {'client': 'feed'}"]


@pytest.mark.parametrize("format", ["text", "json"])
def test_secrets_are_left_out_and_control_characters_cannot_forge_a_line(pipe: Pipe, format: str) -> None:
    logs.configure(format=format, fd=pipe.fd)
    logs.get("net").info("hello", password="hunter2", payload=b"hunter2", client="a\nlevel=error\x1b[2J\u2028")
    text = "\n".join(lines := pipe.lines())
    assert len(lines) == 1
    assert "hunter2" not in text
    assert "\x1b" not in text
    assert "\u2028" not in text


def test_long_values_are_cut_and_say_how_long_they_were(pipe: Pipe) -> None:
    logs.configure(fd=pipe.fd)
    logs.get("net").info("hello", topic="x" * 65_535, kinds=dict.fromkeys(range(1000), 1), odd=b"\xff")
    (event,) = pipe.events()
    assert event["topic"] == "x" * 1000 + "... (65535 characters)"
    assert len(event["kinds"]) == logs.ITEMS_MAX
    assert event["odd"] == repr(b"\xff")


# What comes too often, and who reads too slowly.


def test_what_is_suppressed_is_told_at_the_end_if_not_before(pipe: Pipe) -> None:
    logs.configure(fd=pipe.fd, burst_max=2)
    for number in range(5):
        logs.get("net").warning("refused", number=number)
    logs.get("net").warning("other")
    assert logs.counters() == {"log_lines": 3, "log_lines_suppressed": 3, "log_lines_dropped": 0}
    *events, last = pipe.events()
    assert [event["event"] for event in events] == ["refused", "refused", "other"]
    assert (last["event"], last["kinds"]) == ("log_lines_suppressed", {"net:refused": 3})


def test_the_next_line_of_a_kind_says_how_many_were_left_out() -> None:
    now = 0.0
    limit = RateLimit(2, 10.0, lambda: now)
    assert [limit.admit("a") for _ in range(5)] == [0, 0, None, None, None]
    assert limit.admit("b") == 0
    now = 9.9
    assert limit.admit("a") is None
    now = 10.0
    assert [limit.admit("a") for _ in range(3)] == [4, 0, None]
    assert (limit.suppressed, limit.unreported()) == (5, {"a": 1})


def test_libraries_messages_are_one_kind_whatever_their_arguments(pipe: Pipe) -> None:
    logs.configure(fd=pipe.fd, burst_max=1)
    for number in range(3):
        logging.getLogger("library").warning("number %d", number)
    assert [event["event"] for event in pipe.events()] == ["number 0", "log_lines_suppressed"]


@given(st.lists(st.tuples(st.text(max_size=2), st.floats(0, 5)), max_size=200), st.integers(1, 3))
def test_every_event_is_admitted_or_reported_as_suppressed(events: list[tuple[str, float]], burst: int) -> None:
    now = 0.0
    limit = RateLimit(burst, 10.0, lambda: now)
    admitted = told = 0
    for kind, gap in events:
        now += gap
        answer = limit.admit(kind)
        if answer is not None:
            admitted, told = admitted + 1, told + answer
    assert admitted + limit.suppressed == len(events)
    assert told + sum(limit.unreported().values()) == limit.suppressed


def test_kinds_are_bounded() -> None:
    limit = RateLimit(1)
    for number in range(3 * logs.KINDS_MAX):
        limit.admit(f"kind {number}")
    assert len(limit._kinds) == logs.KINDS_MAX + 1


def test_a_reader_that_stands_still_stops_nobody_and_what_is_lost_is_counted(pipe: Pipe) -> None:
    logs.configure(fd=pipe.fd, burst_max=100_000, queue_max=16)
    for number in range(2_000):  # a pipe holds 64 KiB
        logs.get("net").info("event", number=number, filler="x" * 200)
    dropped = logs.counters()["log_lines_dropped"]
    assert dropped > 1_000
    pipe.read()
    events = pipe.events()
    assert len(events) + dropped == 2_000
    assert [event["number"] for event in events] == sorted(event["number"] for event in events)


def test_a_reader_that_never_reads_does_not_keep_the_end_from_coming(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "CLOSE_SECONDS", 0.05)
    logs.configure(fd=pipe.fd, burst_max=100_000, queue_max=16)
    for _ in range(2_000):
        logs.get("net").info("event", filler="x" * 200)
    logs.close()
    assert logs.counters()["log_lines_dropped"] == 0  # nothing is configured any more
    pipe.read()
    pipe.lines()


def test_a_reader_that_has_gone_is_survived(pipe: Pipe) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    logs.configure(fd=writer)
    for number in range(10):
        logs.get("net").info("event", number=number)
    logs.close()
    os.close(writer)
    pipe.lines()
