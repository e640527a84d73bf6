"""The fields of a message: from its headers, its body and what the broker knows of it."""

import json
from types import SimpleNamespace
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchcore
from fanlight_broker.core.content import Content
from fanlight_broker.core.due import Absent
from fanlight_broker.core.field_reader import FieldReader
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.protocols.mqtt.format import MQTT_3_1_1, MQTT_5_0
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.message import Format, Message
from matchcore.body_reader import BODY_FORMATS, body_format
from matchcore.fields import Attributes
from matchcore.kleene import Untyped, attribute_of
from tests.broker.core.bodies import OTHER
from tests.broker.wire.formats import LineFormat

JSON, MSGPACK = BODY_FORMATS["json"], BODY_FORMATS["msgpack"]
BODY = json.dumps({"price": 7, "order": {"urgent": True}}).encode()


class Asked:
    """A reader, and the names that it is asked for, as selectors spell them."""

    def __init__(self, *names: str) -> None:
        self.attributes = Attributes()
        self.names = {self.attributes.acquire(attribute_of(name)): name for name in names}
        self.reader = FieldReader(self.attributes)

    def of(self, message: Message, *arguments: Any, **named: Any) -> dict[str, Any]:
        self.reader.read_fields(message, *arguments, **named)
        return {self.names[number]: value for number, value in self.reader.values().items()}


def written(
    format: Format, *headers: tuple[str, Any], payload: bytes = b"", content_type: str | None = None
) -> Message:
    """A message of this format with these headers."""
    content = Content(b"a/b", 1, payload, headers, content_type, correlation=b"17", reply=b"r", is_text=True)
    message = format.write(content)
    assert message is not None
    return message


def typed(values: dict[str, Any]) -> dict[str, tuple[type, Any]]:
    """With their types: Untyped text is equal to other text."""
    return {name: (type(value), value) for name, value in values.items()}


def test_native_headers_have_types_and_user_properties_have_none() -> None:
    headers = (
        ("n", 7), ("f", 0.5), ("t", "text"), ("b", True), ("o", b"octets"), ("l", 1), ("l", 2), ("nil", None), ("no", 1)
    )  # fmt: skip
    names = ("n", "f", "t", "b", "o", "l", "nil", "missing")
    assert typed(Asked(*names).of(written(FORMAT, *headers))) == typed(
        {"n": 7, "f": 0.5, "t": "text", "b": True, "o": OTHER, "l": OTHER}
    )
    assert typed(Asked(*names).of(written(MQTT_5_0, *headers))) == typed(
        {name: Untyped(text) for name, text in
         {"n": "7", "f": "0.5", "t": "text", "b": "true", "o": "octets", "l": "1", "nil": ""}.items()}
    )  # fmt: skip


@pytest.mark.parametrize("format", [MQTT_3_1_1, LineFormat("line")])
def test_a_message_without_headers_has_only_the_fields_of_its_body(format: Format) -> None:
    message = Message(format, b"t", 1, BODY)
    assert Asked("a", "payload.price", "$content_type").of(message, JSON) == {"payload.price": 7}


def test_of_native_headers_that_are_left_out_or_nil_there_are_none() -> None:
    topic, payload = msgpack.packb("t"), msgpack.packb(b"p")
    for fields, count in ((topic + payload, 4), (topic + payload + b"\xc0", 5), (topic + payload + b"\x80\xc0", 6)):
        message = Message(FORMAT, b"t", 0, b"p", fields=fields, format_data=count)
        assert Asked("a", "$bytes").of(message) == {"$bytes": 1}


@settings(max_examples=60, deadline=None)
@given(headers=st.dictionaries(st.text(max_size=9), st.one_of(st.text(max_size=9), st.integers(-9, 9)), max_size=9))
def test_each_header_that_both_protocols_can_say_is_found(headers: dict[str, str | int]) -> None:
    # A name that begins with $ is none of a native header, U+0000 is in no string of MQTT.
    headers = {
        name: value for name, value in headers.items()
        if name and name[0] != "$" and "\0" not in f"{name}{value}" and not name.startswith("payload.")
    }  # fmt: skip
    asked = Asked(*headers)
    assert typed(asked.of(written(FORMAT, *headers.items()))) == typed(dict(headers))
    untyped = {name: Untyped(value) for name, value in headers.items()}
    assert typed(asked.of(written(MQTT_5_0, *headers.items()))) == typed(untyped)


@pytest.mark.parametrize("format", [FORMAT, MQTT_5_0])
@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/json", JSON), ("application/JSON; charset=utf-8", JSON), ("application/json ;x", JSON),
        ("application/vnd.api+json", JSON), ("Application/X+Json", JSON), ("application/msgpack", MSGPACK),
        ("application/x-msgpack", MSGPACK), ("application/vnd.msgpack", MSGPACK), ("application/+json", 0),
        ("text/json", 0), ("application/jsonx", 0), ("application/xml", 0), ("application", 0), ("", 0), ("json", 0),
        ("application/x-msgpack2", 0), ("application/json\0", 0),
    ],
)  # fmt: skip
def test_the_content_type_says_which_format_the_body_has(format: Format, content_type: str, expected: int) -> None:
    assert body_format(content_type) == expected
    if "\0" in content_type:
        return
    body = BODY if expected != MSGPACK else msgpack.packb(json.loads(BODY))
    message = written(format, payload=body, content_type=content_type)
    asked = Asked("payload.price", "payload.order.urgent", "$content_type")
    # The setting is for messages that have none.
    for setting in (0, JSON, MSGPACK):
        found = asked.of(message, setting)
        assert found.pop("$content_type") == content_type
        assert found == ({"payload.price": 7, "payload.order.urgent": True} if expected else {})
    assert (asked.reader.bodies.decoded, asked.reader.bodies.malformed) == (3 if expected else 0, 0)


def test_without_a_content_type_the_format_of_the_topic_counts() -> None:
    asked = Asked("payload.price")
    message = Message(MQTT_5_0, b"t", 1, BODY)
    assert asked.of(message) == {}
    assert asked.of(message, JSON) == {"payload.price": 7}
    assert asked.of(message, MSGPACK) == {}
    assert (asked.reader.bodies.decoded, asked.reader.bodies.malformed, asked.reader.bodies.too_large) == (1, 1, 0)


def test_a_body_that_is_not_sound_takes_no_header_with_it() -> None:
    asked = Asked("n", "payload.price", "payload.more", "$qos")
    message = written(FORMAT, ("n", 7), payload=b'{"price": 7, "more"', content_type="application/json")
    assert asked.of(message) == {"n": 7, "$qos": 0}
    assert asked.reader.bodies.malformed == 1
    message = written(FORMAT, ("n", 8), payload=b'{"price": 7}' + b" " * 65_536, content_type="application/json")
    assert asked.of(message) == {"n": 8, "$qos": 0}
    assert (asked.reader.bodies.decoded, asked.reader.bodies.malformed, asked.reader.bodies.too_large) == (0, 1, 1)


def test_no_body_is_read_for_nobody() -> None:
    asked = Asked("n", "$bytes")
    assert asked.of(written(MQTT_5_0, payload=b"{", content_type="application/json")) == {"$bytes": 1}
    assert (asked.reader.bodies.decoded, asked.reader.bodies.malformed) == (0, 0)


def test_what_the_broker_knows_of_a_message() -> None:
    asked = Asked("$words", "$bytes", "$qos", "$retain", "$content_type", "$client", "$user", "$time", "$word[1]")
    message = Message(MQTT_5_0, b"a/b", 1, b"1234", qos=2, retain=True)
    publisher = SimpleNamespace(name="mö", user="")
    known = {"$words": 2, "$bytes": 4, "$qos": 2, "$retain": True, "$time": 5.5, "$word[1]": "a"}
    assert typed(asked.of(message, publisher=publisher, time=5.5)) == typed({**known, "$client": "mö"})
    publisher = SimpleNamespace(name="c", user="u")
    assert asked.of(message, publisher=publisher, time=5.5) == {**known, "$client": "c", "$user": "u"}
    assert typed(asked.of(message, time=5.5)) == typed(known)


def test_of_a_publisher_that_has_gone_the_name_is_known() -> None:
    message = Message(MQTT_5_0, b"a/b", 1, b"")
    assert Asked("$client", "$user").of(message, publisher=Absent("gone", "p").subscriber) == {"$client": "gone"}


WORDS = Asked("$words", *(f"$word[{n}]" for n in range(1, 129)))


@settings(max_examples=140, deadline=None)
@given(topic=st.lists(st.sampled_from([b"a", b"bc", b"/", b".", b"$x", "ä".encode(), b"\xff", b"\0"])).map(b"".join))
@pytest.mark.parametrize("syntax", SYNTAXES)
def test_words_are_those_of_the_matcher(syntax: str, topic: bytes) -> None:
    try:
        words = matchcore.split_topic(topic, syntax)
    except matchcore.InvalidTopic:
        return
    found = WORDS.of(Message(MQTT_5_0, topic, SYNTAXES.index(syntax), b""))
    assert found.pop("$words") == len(words)
    expected = [word.decode(errors="replace") if is_utf8(word) else OTHER for word in words]
    assert found == {f"$word[{n}]": word for n, word in enumerate(expected, 1)}


def is_utf8(word: bytes) -> bool:
    try:
        word.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_a_word_alone_is_found_and_none_behind_the_last() -> None:
    asked = Asked("$word[2]", "$word[4]")
    assert asked.of(Message(MQTT_5_0, b"a/b/c", 1, b"")) == {"$word[2]": "b"}
    assert asked.of(Message(MQTT_5_0, b"a", 1, b"")) == {}
    long = b"/".join(b"%d" % n for n in range(1, 1_000))
    assert asked.of(Message(MQTT_5_0, long, 1, b"")) == {"$word[2]": "2", "$word[4]": "4"}


def test_names_may_be_asked_for_and_released_between_messages() -> None:
    asked = Asked("a")
    message = written(FORMAT, ("a", 1), ("b", 2), payload=BODY, content_type="application/json")
    assert asked.of(message) == {"a": 1}
    (a,) = asked.names
    for name in ("b", "payload.price", *(f"x{n}" for n in range(200))):
        asked.names[asked.attributes.acquire(attribute_of(name))] = name
    assert asked.of(message) == {"a": 1, "b": 2, "payload.price": 7}
    asked.attributes.release(a)
    asked.names[asked.attributes.acquire(attribute_of("payload.order.urgent"))] = "payload.order.urgent"
    assert asked.of(message) == {"b": 2, "payload.price": 7, "payload.order.urgent": True}
