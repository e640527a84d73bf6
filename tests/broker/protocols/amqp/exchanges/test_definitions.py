"""RabbitMQ's definitions: read, declared, written, and what is no such file."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp.exchanges import Binding, Exchanges
from fanlight_broker.protocols.amqp.exchanges.definitions import (
    DefinitionsError,
    ExchangeDefinition,
    QueueDefinition,
    declare_all,
    read_definitions,
    written,
)

# As RabbitMQ 3.10.8 writes it; what other parts of the broker read is shortened.
FILE = """
{"bindings":[
 {"arguments":{},"destination":"q","destination_type":"queue","routing_key":"k","source":"x","vhost":"/"},
 {"arguments":{"a":1,"x-match":"any"},"destination":"q","destination_type":"queue","routing_key":"","source":"amq.headers",
  "vhost":"/"},
 {"arguments":{},"destination":"y","destination_type":"exchange","routing_key":"e","source":"x","vhost":"/"}],
"exchanges":[
 {"arguments":{},"auto_delete":false,"durable":true,"internal":false,"name":"x","type":"direct","vhost":"/"},
 {"arguments":{"alternate-exchange":"x"},"auto_delete":true,"durable":true,"internal":true,"name":"y","type":"topic",
  "vhost":"/"}],
"global_parameters":[],"parameters":[],"permissions":[],"policies":[],
"queues":[{"arguments":{"x-max-length":5},"auto_delete":false,"durable":true,"name":"q","type":"classic","vhost":"/"}],
"rabbit_version":"3.10.8","rabbitmq_version":"3.10.8","topic_permissions":[],"users":[],
"vhosts":[{"limits":[],"metadata":{"description":"Default virtual host","tags":[]},"name":"/"},{"name":"other"}]}
"""


def test_a_file_of_rabbitmq() -> None:
    found = read_definitions(json.loads(FILE))
    assert list(found) == ["/", "other"]
    assert found["/"].exchanges == [
        ExchangeDefinition("x", "direct", True, False, False, {}),
        ExchangeDefinition("y", "topic", True, True, True, {"alternate-exchange": "x"}),
    ]
    assert found["/"].queues == [QueueDefinition("q", True, False, {"x-max-length": 5})]
    assert found["/"].bindings == [
        Binding("x", "q", True, "k", {}), Binding("amq.headers", "q", True, "", {"a": 1, "x-match": "any"}),
        Binding("x", "y", False, "e", {}),
    ]  # fmt: skip
    assert found["other"].exchanges == found["other"].queues == found["other"].bindings == []


def test_what_is_written_is_read_again() -> None:
    found = read_definitions(json.loads(FILE))["/"]
    exchanges = Exchanges("/", {"q"})
    assert declare_all(found, exchanges) == declare_all(found, exchanges) == []
    assert exchanges.publish("x", "k").queues == ("q",)
    again = read_definitions(json.loads(json.dumps(written({"/": (exchanges, found.queues)}))))
    assert again["/"].exchanges == found.exchanges
    assert again["/"].queues == found.queues
    assert sorted(again["/"].bindings, key=str) == sorted(found.bindings, key=str)


def test_a_file_of_one_vhost_and_what_is_there_in_any_case() -> None:
    document = {
        "exchanges": [{"name": "", "type": "direct"}, {"name": "amq.topic", "type": "topic"}],
        "bindings": [{"source": "", "destination": "q"}, {"source": "amq.topic", "destination": "q"}],
        "queues": [{"name": "q"}],
    }
    found = read_definitions(document, "v")
    assert list(found) == ["v"]
    assert found["v"].exchanges == []
    assert found["v"].bindings == [Binding("amq.topic", "q", True, "", {})]
    with pytest.raises(DefinitionsError, match=r"exchanges\[0\].vhost: is missing"):
        read_definitions(document)


def test_what_is_refused_is_named_and_the_rest_is_there() -> None:
    document = {
        "exchanges": [{"name": "a", "type": "bogus"}, {"name": "b", "type": "fanout"}],
        "bindings": [
            {"source": "a", "destination": "q", "routing_key": "k"}, {"source": "b", "destination": "no"},
            {"source": "b", "destination": "q"},
        ],
    }  # fmt: skip
    exchanges = Exchanges("/", {"q"})
    assert declare_all(read_definitions(document, "/")["/"], exchanges) == [
        "exchange 'a': unknown exchange type 'bogus'",
        "binding 'a' to 'q' by 'k': no exchange 'a' in vhost '/'",
        "binding 'b' to 'no' by '': no queue 'no' in vhost '/'",
    ]
    assert exchanges.publish("b", "").queues == ("q",)


WRONG: list[tuple[Any, str]] = [
    ([], "the file: is no object"),
    ({"queues": {}}, "queues: is no list"),
    ({"queues": [1]}, r"queues\[0\]: is no object"),
    ({"queues": [{"name": 1}]}, r"queues\[0\].name: 1 is no str"),
    ({"vhosts": [{}]}, r"vhosts\[0\].name: is missing"),
    ({"exchanges": [{"name": "a"}]}, r"exchanges\[0\].type: is missing"),
    ({"exchanges": [{"name": "é" * 128, "type": "direct"}]}, "256 bytes, at most 255 are allowed"),
    ({"exchanges": [{"name": "a", "type": "direct", "durable": "yes"}]}, r"durable: 'yes' is no bool"),
    ({"queues": [{"name": "a", "arguments": []}]}, "arguments: .* is no dict"),
    ({"queues": [{"name": "a", "arguments": {"n": [{"m": 2**63}]}}]}, r"queues\[0\].arguments.n\[0\].m: .* 64 bits"),
    ({"queues": [{"name": "\ud800"}]}, "half a surrogate pair is no text"),
    ({"bindings": [{"source": "a", "destination": "b", "destination_type": "topic"}]}, "neither queue nor exchange"),
    ({"queues": [{"name": "a", "arguments": {"n": ["\udc00"]}}]}, r"arguments.n\[0\]: half a surrogate pair"),
    ({"queues": [{"name": "a", "arguments": {"n" * 256: 1}}]}, r"arguments: 256 bytes in a name, at most 255"),
    ({"queues": [{"name": "a", "arguments": {"n": float("inf")}}]}, "inf is no number of JSON"),
]


@pytest.mark.parametrize(("document", "text"), WRONG, ids=[text for _, text in WRONG])
def test_what_is_no_file_of_definitions_is_refused_with_the_place(document: Any, text: str) -> None:
    with pytest.raises(DefinitionsError, match=text):
        read_definitions(document, "/")


def test_arguments_too_deep_are_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(20):
        deep = {"a": deep}
    with pytest.raises(DefinitionsError, match="more than 16 deep"):
        read_definitions({"queues": [{"name": "a", "arguments": deep}]}, "/")


def test_more_arguments_than_a_method_may_have_are_refused() -> None:
    with pytest.raises(DefinitionsError, match="more than 1000 values"):
        read_definitions({"queues": [{"name": "a", "arguments": {"a": [1] * 1_000}}]}, "/")


@pytest.mark.parametrize("value", [b"\xff", Decimal(1), [b"x"]])
def test_what_json_cannot_have_is_not_written(value: Any) -> None:
    exchanges = Exchanges("/", {"q"})
    exchanges.bind("q", "amq.headers", "", {"h": value})
    with pytest.raises(DefinitionsError, match=r"arguments\.h"):
        written({"/": (exchanges, [])})


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)
NAMES = ("name", "vhost", "type", "durable", "arguments", "source", "destination", "destination_type", "routing_key")
OBJECTS = st.lists(st.one_of(JSON, st.dictionaries(st.sampled_from(NAMES), JSON)), max_size=3)


@given(st.dictionaries(st.sampled_from(("vhosts", "exchanges", "queues", "bindings")), st.one_of(JSON, OBJECTS)))
def test_any_document_is_read_or_refused(document: Any) -> None:
    try:
        found = read_definitions(document, "/")
    except DefinitionsError:
        return
    for each in found.values():
        declare_all(each, Exchanges("/", {queue.name for queue in each.queues}))
