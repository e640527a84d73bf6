"""The sampler: which messages are traced, by their trace context and by chance."""

import pytest

from fanlight_broker.core.content import Content
from fanlight_broker.protocols.amqp.fields import pack_fields
from fanlight_broker.protocols.amqp.format import FORMAT as AMQP
from fanlight_broker.protocols.amqp.properties import BasicProperties, encode_properties
from fanlight_broker.protocols.native.format import FORMAT as NATIVE
from fanlight_broker.wire.message import Format, Message
from fanlight_broker.wire.sampler import Sampler

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, NOT_SAMPLED = f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00"


def message(parent: object = None, format: Format = NATIVE) -> Message:
    headers = () if parent is None else (("first", 1), ("traceparent", parent), ("tracestate", "a=1"))
    made = format.write(Content(b"a.b", 0, b"traceparent", headers))  # type: ignore[arg-type]
    assert isinstance(made, Message)
    return made


def sampler(ratio: float = 0, *, parents: bool = True, per_second: int = 1_000_000) -> Sampler:
    return Sampler(ratio, parents=parents, per_second=per_second, seed=7)


@pytest.mark.parametrize("format", [NATIVE, AMQP], ids=lambda each: each.name)
@pytest.mark.parametrize(("parent", "valid", "chosen"), [
    (SAMPLED, True, True),
    (NOT_SAMPLED, True, False),
    (f"00-{TRACE}-{SPAN}-03", True, True),  # flags that are not known are ignored (3.2.2.5)
    (f"cc-{TRACE}-{SPAN}-01-what-the-future-brings", True, True),  # 3.2.4
    (f"cc-{TRACE}-{SPAN}-01.", False, False),
    (f"ff-{TRACE}-{SPAN}-01", False, False),
    (f"00-{TRACE}-{SPAN}-01-", False, False),
    (f"00-{'0' * 32}-{SPAN}-01", False, False),
    (f"00-{TRACE}-{'0' * 16}-01", False, False),
    (SAMPLED.upper(), False, False),
    (SAMPLED[:-1], False, False),
    ("", False, False),
    (7, False, False),
    (None, False, False),
])
def test_a_valid_context_decides(format: Format, parent: object, valid: bool, chosen: bool) -> None:
    one = sampler()
    made = message(parent, format)
    assert one.chooses(made, 0) is chosen
    assert one.parent(made) == (parent if valid else None)
    assert sampler(parents=False).parent(made) is None
    if parent is not None:
        assert made.format.header_text(made, b"tracestate") == "a=1"


def test_without_a_context_a_share_is_chosen_by_chance() -> None:
    one, chosen = sampler(0.01), 0
    for _ in range(100_000):
        if one.chooses(message_without, 0):
            chosen += 1
            one.take(by_ratio=True)
    assert 800 < chosen < 1_200  # six standard deviations; the seed is fixed
    assert one.chosen == chosen


message_without = message()


def test_one_that_is_chosen_stays_so_until_it_is_taken() -> None:
    one = sampler(1)
    assert one.chooses(message_without, 0)
    assert one.chooses(message_without, 0)
    one.use(0, True, 10)
    assert not one.chooses(message_without, 0)


def test_there_is_a_bound_for_each_second() -> None:
    one = sampler(per_second=2)
    parent = message(SAMPLED)
    for _ in range(2):
        assert one.chooses(parent, 5.0)
        one.take(by_ratio=False)
    assert not one.chooses(parent, 5.9)
    assert one.limited == 1
    assert one.chooses(parent, 6.0)


def test_a_context_is_no_matter_of_other_properties_of_amqp() -> None:
    properties = BasicProperties(
        content_type="text/plain", content_encoding="x",
        headers={"a": {"traceparent": NOT_SAMPLED}, "b": [1], "c": None},
    )
    fields = pack_fields("traceparent", "traceparent", encode_properties(properties))
    assert not sampler().chooses(Message(AMQP, b"a", 2, b"", fields=fields), 0)
    properties.headers["traceparent"] = SAMPLED  # type: ignore[index]
    fields = pack_fields("", "", encode_properties(properties))
    assert sampler().chooses(Message(AMQP, b"a", 2, b"", fields=fields), 0)
    for size in range(len(fields)):  # cut off: nothing is read behind its end
        sampler().chooses(Message(AMQP, b"a", 2, b"", fields=fields[:size]), 0)
