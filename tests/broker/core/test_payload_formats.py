"""Which format bodies have where no content type says it: the setting `payload_format`."""

import pytest

from fanlight_broker.config import SettingsError, Sources, load
from fanlight_broker.core.errors import InvalidFilter
from fanlight_broker.core.payload_formats import PayloadFormats
from matchcore.body_reader import BODY_FORMATS

JSON, MSGPACK = BODY_FORMATS["json"], BODY_FORMATS["msgpack"]


def test_the_first_filter_that_matches_decides() -> None:
    formats = PayloadFormats(" sensors.raw.# = msgpack, sensors.#=JSON,mqtt:factory/+/state=msgpack, ")
    assert formats.of(b"sensors.raw.1", "amqp") == MSGPACK
    assert formats.of(b"sensors.1", "amqp") == JSON
    assert formats.of(b"sensors/1", "mqtt") == JSON
    assert formats.of(b"factory/7/state", "mqtt") == MSGPACK
    assert formats.of(b"factory.7.state", "amqp") == MSGPACK
    assert formats.of(b"factory/7", "mqtt") == 0
    assert PayloadFormats("#=json, a=msgpack").of(b"a", "amqp") == JSON


def test_without_a_filter_no_body_has_a_format() -> None:
    assert PayloadFormats().of(b"a", "amqp") == 0
    assert PayloadFormats("a=json").of(b"b", "amqp") == 0


def test_wildcards_do_not_match_reserved_topics() -> None:
    formats = PayloadFormats("#=json, $SYS.broker.#=msgpack")
    assert formats.of(b"$SYS.other", "amqp") == 0
    assert formats.of(b"$SYS/broker/uptime", "mqtt") == MSGPACK


def test_an_equals_sign_may_be_part_of_a_filter() -> None:
    assert PayloadFormats("a=b=json").of(b"a=b", "amqp") == JSON


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a", "'a': write filter=msgpack or filter=json"),
        ("a=json, b=xml", "'b=xml': write"),
        ("=json", "'=json': write"),
        ("a=", "'a=': write"),
        ("mqtt:a/#/b=json", "'a/#/b' is no mqtt filter"),
    ],
)
def test_what_is_no_format_of_a_filter_is_refused_at_the_start(text: str, reason: str) -> None:
    with pytest.raises(InvalidFilter) as caught:
        PayloadFormats(text)
    assert reason in str(caught.value)
    with pytest.raises(SettingsError) as refused:
        load(Sources(environment={"FANLIGHT_PAYLOAD_FORMAT": text}))
    assert reason in str(refused.value)
    assert load(Sources(environment={"FANLIGHT_PAYLOAD_FORMAT": "a.#=json"})).settings.payload_format == "a.#=json"
