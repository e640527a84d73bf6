"""Snapshots of subscriptions: read whole or not at all, by hand too, and taken from brokers that cut us off."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

from fanlight_spark.snapshot import Snapshot, SnapshotError, Subscription, main, parse, read, take

HEAD = b'{"snapshot": 1, "taken": "2026-11-21T20:00:00+00:00", "broker": "0.1.0", "from": 0}\n'
ROWS = [
    b'{"id": 4, "client": "c", "user": "u", "filter": "a/+", "syntax": "mqtt", "group": "g", "qos": 1, '
    b'"no_echo": true}\n',
    b'{"id": 7, "client": "", "user": "", "filter": "x.\\udcff", "syntax": "amqp", "group": null, "qos": 0}\n',
]
FOUND = (Subscription("a/+", "mqtt", "c", "u", "g", 1, True), Subscription("x.\udcff"))


def test_a_whole_one_is_read_as_it_was_taken() -> None:
    snapshot = parse([HEAD, *ROWS, b'{"end": 2}\n'])
    assert snapshot == Snapshot(FOUND, "2026-11-21T20:00:00+00:00")
    assert list(snapshot.filters()) == [(b"a/+", 0, "mqtt", None), (b"x.\xff", 1, "amqp", None)]


def test_one_with_selectors_is_read_with_them() -> None:
    rows = [ROWS[0], b'{"id": 9, "filter": "s.#", "where": "price > 100"}\n']
    snapshot = parse([HEAD.replace(b": 1,", b": 2,", 1), *rows, b'{"end": 2}\n'])
    assert list(snapshot.filters()) == [(b"a/+", 0, "mqtt", None), (b"s.#", 1, "amqp", "price > 100")]
    assert snapshot.selectors == 1
    with pytest.raises(SnapshotError, match="where is 5, and should be str"):
        parse([b'{"filter": "a", "where": 5}\n'])


def test_what_counts_by_topic_alone_refuses_selectors() -> None:
    from fanlight_spark.shares import terms_of

    with pytest.raises(ValueError, match="1 of the snapshot's subscriptions have a selector"):
        terms_of(Snapshot((Subscription("a"), Subscription("#", where="n > 1"))))


def test_one_with_a_selector_covers_no_other() -> None:
    from fanlight_spark.coverage import coverage

    plain = tuple(Subscription(text, client="c") for text in ("a.#", "a.b"))
    assert coverage(Snapshot(plain))[1] == [None, (b"a.#", "amqp")]
    selected = (Subscription("a.#", client="c", where="n > 1"), plain[1])
    assert coverage(Snapshot(selected)) == ([None, None], [None, None])


def test_by_hand_a_filter_is_enough() -> None:
    assert parse([b'{"filter": "stock.#"}\n', b"\n", b'{"filter": "a", "client": "c"}']).subscriptions == (
        Subscription("stock.#"), Subscription("a", client="c"),
    )  # fmt: skip
    assert parse([]) == Snapshot(())


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([HEAD, *ROWS], "has 2 subscriptions and has no end"),
        ([HEAD, ROWS[0], b'{"end": 2}'], "says that it has 2"),
        ([HEAD, b'{"end": 0}', ROWS[0]], "line 3: there is something behind the end"),
        ([b'{"snapshot": 9}'], "of version 9"),
        ([HEAD, b'{"id": 4, "fil'], "line 2: no line of JSON"),
        ([b'["a"]'], "a JSON object is wanted"),
        ([b'{"client": "c"}'], "line 1: no filter"),
        ([b'{"filter": 7}'], "filter is 7, and should be str"),
        ([b'{"filter": "a", "syntax": "stomp"}'], "'stomp' is neither amqp nor mqtt"),
        ([b'{"filter": "a"}', b'{"filter": "\\ud800"}'], "line 2: the filter has a surrogate"),
        ([b'{"filter": "$share/g/a", "syntax": "mqtt"}'], 'give the name as "group"'),
    ],
)
def test_what_is_none_or_not_whole_is_refused_with_its_place(lines: list[bytes], told: str) -> None:
    with pytest.raises(SnapshotError, match=told):
        parse(lines)


class Broker(BaseHTTPRequestHandler):
    """Tells `ids`, and goes away after so many bytes of each answer, each time of `cuts`."""

    protocol_version = "HTTP/1.1"
    ids: ClassVar[list[int]]
    cuts: ClassVar[list[int]]
    asked: ClassVar[list[str]]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        first = int(self.path.rpartition("=")[2])
        rows = [{"id": each, "filter": f"f.{each}"} for each in self.ids if each >= first]
        body = b"".join([HEAD, *(json.dumps(row).encode() + b"\n" for row in rows), b'{"end": %d}\n' % len(rows)])
        sent = body[: self.cuts.pop(0)] if self.cuts else body
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(sent), sent))
        if sent == body:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def broker(ids: list[int], cuts: list[int]) -> Iterator[str]:
    Broker.ids, Broker.cuts, Broker.asked = ids, cuts, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Broker)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_one_that_is_cut_off_is_gone_on_with_behind_the_last_subscription(tmp_path: Path) -> None:
    with broker([3, 5, 6, 9, 400], [len(HEAD) + 30, len(HEAD) + 40]) as url:  # in a first and in a second line
        assert take(url, tmp_path / "taken") == 5
    assert [path.rpartition("=")[2] for path in Broker.asked] == ["0", "4", "6"]
    snapshot = read(tmp_path / "taken")
    assert [each.filter for each in snapshot.subscriptions] == ["f.3", "f.5", "f.6", "f.9", "f.400"]
    assert snapshot.taken == "2026-11-21T20:00:00+00:00"


def test_without_progress_it_is_given_up_and_nothing_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with broker([3, 5], [len(HEAD) + 40, len(HEAD) + 5]) as url:
        assert main([url, str(tmp_path / "taken")]) == 1
    assert "127.0.0.1" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("line", [b'{"filter": "a"}\n', b'{"end": 3}\n', b"<html>\n"])
def test_an_answer_that_is_none_of_a_broker_is_told_without_the_password(
    line: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fanlight_spark.snapshot._open", lambda url, place: BytesIO(HEAD + line))
    assert main(["http://me:secret@127.0.0.1:7421", str(tmp_path / "taken")]) == 1
    said = capsys.readouterr().err
    assert "http://...@127.0.0.1:7421: " in said
    assert "secret" not in said
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="such as http://127") as told:
        take("fanlight://me:secret@127.0.0.1:7420", tmp_path / "taken")
    assert "secret" not in str(told.value)
