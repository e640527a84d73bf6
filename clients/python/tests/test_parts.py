"""The parts that do no I/O: addresses, delays, topics, serialisers, the outbox, what the command line prints."""

import re
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fanlight
from fanlight import serializers, topics
from fanlight.backoff import Backoff
from fanlight.cli import queue, text
from fanlight.cli.http import Views
from fanlight.errors import BROKER_ERRORS, BrokerError, FanlightError, InvalidURL, from_broker
from fanlight.outbox import Outbox
from fanlight.queues import QueueState
from fanlight.url import Address, parse


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("fanlight://localhost", Address("localhost", 7420)),
        ("fanlight://127.0.0.1:1234/", Address("127.0.0.1", 1234)),
        ("fanlight://[::1]:7420", Address("::1", 7420)),
        ("fanlight://me:pa%3Ass@h:1", Address("h", 1, "me", "pa:ss")),
        ("fanlight://me@h", Address("h", 7420, "me", None)),
        ("fanlights://h", Address("h", 7423, tls=True)),
        ("fanlights://me:x@h:1", Address("h", 1, "me", "x", tls=True)),
    ],
)
def test_an_address_is_read(url: str, address: Address) -> None:
    assert parse(url) == address


@pytest.mark.parametrize(
    "url",
    ["", "localhost:7420", "http://h", "fanlight://", "fanlight://h:99999", "fanlight://h:x", "fanlight://h/path",
     "fanlight://h?x=1"],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidURL):
        parse(url)


def test_a_password_is_in_no_message() -> None:
    with pytest.raises(InvalidURL) as raised:
        parse("fanlight://me:s3cret@h/path")
    assert "s3cret" not in str(raised.value)
    assert "s3cret" not in repr(parse("fanlight://me:s3cret@h"))
    assert "s3cret" not in str(parse("fanlight://me:s3cret@h"))


@pytest.mark.parametrize("password", ["s3c/ret", "s3c?ret", "s3c#ret"])
@pytest.mark.parametrize("read", [lambda rest: parse(f"fanlight://{rest}"), lambda rest: Views(f"http://{rest}")])
def test_a_password_that_must_be_encoded_is_told_so_and_not_shown(read: Callable[[str], object], password: str) -> None:
    with pytest.raises(InvalidURL, match="write %2F for /") as raised:
        read(f"me:{password}@h:7420")
    assert "s3c" not in str(raised.value)


def test_an_address_says_itself_as_a_url() -> None:
    assert str(parse("fanlight://[::1]:99")) == "fanlight://[::1]:99"


def test_delays_double_up_to_the_maximum_and_jitter_takes_any_part_of_them() -> None:
    backoff = Backoff(initial=0.5, maximum=3.0, attempts=6)
    assert list(backoff.delays(lambda low, high: high)) == [0.5, 1.0, 2.0, 3.0, 3.0, 3.0]
    assert list(backoff.delays(lambda low, high: low)) == [0.0] * 6


def test_delays_without_an_end_do_not_overflow() -> None:
    delays = Backoff().delays(lambda low, high: high)
    assert [next(delays) for _ in range(5000)][-1] == 10.0


@pytest.mark.parametrize(
    "wrong", [{"initial": 0}, {"factor": 0.5}, {"initial": 2, "maximum": 1}, {"attempts": 0}], ids=str
)
def test_a_backoff_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="backoff"):
        Backoff(**wrong)


@pytest.mark.parametrize(
    ("topic", "syntax", "words"),
    [
        ("a.b", 0, ("a", "b")),
        ("a..b", 0, ("a", "", "b")),
        ("", 0, ()),
        ("a/b", 0, ("a/b",)),
        ("a/b", 1, ("a", "b")),
        ("/a", 1, ("", "a")),
        ("stock/nyse/BRK.B", 1, ("stock", "nyse", "BRK.B")),
        (b"a.\xff", 0, ("a", "\udcff")),
        (b"", 0, ()),
        (b"\xff/", 1, ("\udcff", "")),
    ],
)
def test_a_topic_is_taken_apart_as_it_is_spelled(topic: Any, syntax: int, words: tuple[Any, ...]) -> None:
    assert topics.words(topic, syntax) == words


@pytest.mark.parametrize("octets", [b"plain", b"a.\xff", "zürich".encode(), b"\xed\xa0\x80", b"\xc3"])
def test_octets_of_a_topic_are_themselves_again_behind_the_text(octets: bytes) -> None:
    assert topics.octets(topics.text(octets)) == octets
    assert topics.octets(topics.checked(topics.text(octets))) == octets


def test_a_topic_that_no_octets_spell_is_refused() -> None:
    with pytest.raises(fanlight.InvalidTopic, match="not text"):
        topics.checked("a.\ud800")


def test_the_blocking_client_needs_no_import_of_its_own() -> None:
    program = "import fanlight, sys; assert 'fanlight.sync' not in sys.modules; print(fanlight.sync.connect.__module__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("fanlight.sync\n", "")
    with pytest.raises(AttributeError, match="no attribute 'synk'"):
        fanlight.synk  # noqa: B018


def test_a_connect_that_was_not_awaited_says_so() -> None:
    connecting: Any = fanlight.connect("fanlight://h")
    with pytest.raises(AttributeError, match=r"await it, as in .* or use `async with fanlight.connect"):
        connecting.publish("t", b"")
    with pytest.raises(AttributeError, match="'Connecting' object has no attribute 'publisch'"):
        connecting.publisch("t", b"")
    with pytest.raises(TypeError, match="use `async with"), connecting:
        pass


def test_an_inbox_is_put_into_either_spelling() -> None:
    assert topics.join("$inbox.0a", "7", topics.AMQP) == "$inbox.0a.7"
    assert topics.join("$inbox.0a", "7", topics.MQTT) == "$inbox/0a/7"


@given(st.binary())
def test_octets_become_text_where_they_are(octets: bytes) -> None:
    checked = topics.checked(octets)
    assert (checked.encode() if isinstance(checked, str) else checked) == octets


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_values_survive_their_serializer(value: Any) -> None:
    for serializer in (fanlight.JSON, fanlight.MSGPACK):
        assert serializer.decode(serializer.encode(value)) == value


@pytest.mark.parametrize("serializer", [fanlight.JSON, fanlight.MSGPACK])
def test_what_cannot_be_written_or_read_is_a_serialization_error(serializer: fanlight.Serializer) -> None:
    with pytest.raises(fanlight.SerializationError):
        serializer.encode(object())
    with pytest.raises(fanlight.SerializationError):
        serializer.decode(b"\xc1{")


@pytest.mark.parametrize(
    ("content_type", "chosen"),
    [
        ("application/json", fanlight.JSON),
        ("application/json; charset=utf-8", fanlight.JSON),
        ("application/geo+json", fanlight.JSON),
        ("Application/MsgPack", fanlight.MSGPACK),
        ("text/plain", fanlight.BYTES),
        (7, fanlight.BYTES),
    ],
)
def test_a_content_type_chooses_the_serializer(content_type: object, chosen: fanlight.Serializer) -> None:
    assert serializers.for_content_type(content_type, fanlight.BYTES) is chosen


def test_an_own_serializer_is_chosen_by_its_own_content_type() -> None:
    class Hexadecimal:
        content_type: str | None = "text/hex"

        def encode(self, value: Any) -> bytes:
            return bytes(value).hex().encode()

        def decode(self, payload: bytes) -> Any:
            return bytes.fromhex(payload.decode())

    own = Hexadecimal()
    assert serializers.for_content_type("text/hex", own) is own


@pytest.mark.parametrize("code", BROKER_ERRORS)
def test_every_code_has_its_class(code: str) -> None:
    error = from_broker(code, "text", {"limit": 5}, 9)
    assert type(error) is BROKER_ERRORS[code]
    assert (str(error), error.code, error.details, error.request) == ("text", code, {"limit": 5}, 9)


def test_an_unknown_code_is_a_broker_error_all_the_same() -> None:
    error = from_broker("too_early", "", None, None)
    assert type(error) is BrokerError
    assert (str(error), error.code) == ("too_early", "too_early")


def test_every_error_is_in_the_tree() -> None:
    errors = [each for each in vars(fanlight).values() if isinstance(each, type) and issubclass(each, Exception)]
    assert len(errors) > 20
    assert all(issubclass(each, FanlightError) for each in errors)


ENTRIES = st.lists(st.tuples(st.booleans(), st.binary(min_size=1, max_size=30)))


@given(ENTRIES, st.lists(st.integers(0, 100)))
def test_an_outbox_gives_out_everything_once_in_order_and_keeps_its_counts(
    entries: list[tuple[bool, bytes]], takes: list[int]
) -> None:
    outbox = Outbox(limit=100)
    for is_message, frame in entries:
        (outbox.put_message if is_message else outbox.put_transient)(frame)
    taken = b""
    for at_most in takes:
        taken += outbox.take(at_most)
        assert outbox.size == sum(len(frame) for _, frame in entries) - len(taken)
        assert outbox.full == (outbox.size >= 100)
    taken += outbox.take(10**9)
    assert taken == b"".join(frame for _, frame in entries)
    assert (outbox.size, outbox.messages) == (0, 0)
    assert outbox.messages_in == sum(is_message for is_message, _ in entries)


@given(ENTRIES, st.integers(0, 100))
def test_losing_the_connection_leaves_the_messages_alone(entries: list[tuple[bool, bytes]], at_most: int) -> None:
    outbox = Outbox(limit=100)
    for is_message, frame in entries:
        (outbox.put_message if is_message else outbox.put_transient)(frame)
    taken = outbox.take(at_most)
    outbox.drop_transient()
    rest, size = [], 0
    for is_message, frame in entries:
        if size >= len(taken) and is_message:
            rest.append(frame)
        size += len(frame)
    assert outbox.messages == len(rest)
    assert outbox.take(10**9) == b"".join(rest)


@pytest.mark.parametrize(
    ("value", "spaces", "shown"),
    [
        ("plain text", True, "plain text"),
        ("two words", False, "two\\x20words"),
        ("line\nline\r", True, "line\\nline\\r"),
        (b"\xff\x00ok", True, "\\xff\\x00ok"),
        ("\x1b[31mred", True, "\\x1b[31mred"),
        ("zürich", True, "zürich"),
        ('{"a":"\\\\"}', True, '{"a":"\\\\"}'),
    ],
)
def test_a_line_is_one_line_and_steers_no_terminal(value: str | bytes, spaces: bool, shown: str) -> None:
    assert text.shown(value, spaces=spaces) == shown


def test_headers_of_the_command_line_are_pairs() -> None:
    assert text.headers(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    assert text.headers(None) is None
    for wrong in ("alone", "=x", ":=1"):
        with pytest.raises(ValueError, match="KEY=TEXT"):
            text.headers([wrong])


def test_headers_of_the_command_line_can_be_numbers() -> None:
    words = ["a:=600", "b:=-1.5e3", "c:=true", 'd:="600"', "e=:=1", "f==1", "g:=18446744073709551615"]
    found = text.headers(words)
    assert found == {
        "a": 600, "b": -1500.0, "c": True, "d": "600", "e": ":=1", "f": "=1", "g": (1 << 64) - 1,
    }  # fmt: skip
    assert [type(value) for value in found.values()] == [int, float, bool, str, str, str, int]
    for value in ("dear", "", "null", "[1]", "{}", "NaN", "1e999", 9_000 * "[", "18446744073709551616"):
        wrong = f"a:={value}"
        with pytest.raises(ValueError, match=re.escape(repr(wrong))):
            text.headers([wrong])


def test_the_table_of_queues_has_their_selectors() -> None:
    def state(name: str, where: str | None) -> QueueState:
        return QueueState(
            name=name, durable=True, waiting=1_200, delayed=0, unacknowledged=0, bytes=9, oldest_seconds=None,
            consumers=0, where=where,
        )

    assert queue.table([state("all", None), state("large", "total > 9"), state("long", "a = 1 OR " * 9 + "b")]) == [
        "NAME   WAITING  DELAYED  UNACKED  CONSUMERS  BYTES  OLDEST  WHERE",
        "all      1,200        0        0          0      9       -",
        "large    1,200        0        0          0      9       -  total > 9",
        "long     1,200        0        0          0      9       -  a = 1 OR a = 1 OR a = 1 OR a = 1 OR a...",
    ]


def test_options_of_tls_are_for_addresses_with_tls() -> None:
    with pytest.raises(ValueError, match="fanlights://"):
        fanlight.connect("fanlight://h", ca="ca.pem")
    with pytest.raises(ValueError, match="a whole context"):
        fanlight.connect("fanlights://h", ca="ca.pem", tls=ssl.create_default_context())
    with pytest.raises(ValueError, match="give certificate too"):
        fanlight.connect("fanlights://h", key="key.pem")


def test_a_file_that_cannot_be_used_for_tls_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    with pytest.raises(fanlight.ConnectError, match=r"the CA certificates in .*missing\.pem: No such file"):
        fanlight.connect("fanlights://h", ca=missing)
    with pytest.raises(fanlight.ConnectError, match=r"the certificate in .*missing\.pem: No such file"):
        fanlight.connect("fanlights://h", certificate=missing)
