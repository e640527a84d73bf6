"""Acknowledgements in the compiled lane: what it does without Python is what the path through Python does."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.methods import method_frame
from tests.broker.protocols.amqp.test_lane import ARGUMENTS, Side
from tests.broker.protocols.amqp.world import published

ANSWERS = st.tuples(
    st.sampled_from(["ack", "ack", "ack", "up to", "up to", "up to", "nack", "nack up to", "reject"]),
    st.integers(0, 12), st.booleans(),
)  # fmt: skip
MEANWHILE = st.tuples(st.sampled_from([
    method_frame(1, basic.BasicGet(queue="q")),
    method_frame(1, basic.BasicGet(queue="r", no_ack=True)),
    method_frame(1, basic.BasicCancel("second", True)),
    method_frame(1, basic.BasicConsume(queue="r", consumer_tag="third", no_wait=True)),
    method_frame(1, basic.BasicQos(0, 3, True)),
    method_frame(1, basic.BasicQos(0, 0, True)),
    method_frame(1, basic.BasicRecover(True)),
    method_frame(1, entity.QueueDelete(queue="q", no_wait=True)),
    method_frame(1, entity.TxSelect()),
    method_frame(1, entity.TxCommit()),
    method_frame(1, entity.TxRollback()),
    published("q", b"not all of it")[:30],
]), st.just(0), st.just(False))  # fmt: skip
PUBLISHED = st.tuples(st.sampled_from(["q", "r", "q"]), st.integers(1, 6), st.booleans())


def acknowledged(
    steps: list[tuple[str | bytes, int, bool]], prefetch: int, arguments: dict[str, Any], *, compiled: bool
) -> dict[str, Any]:
    """What a reader with three consumers gets that deals with its deliveries so, and what is left then.

    A step: messages to a queue, or a frame, or what is done with the tag at a place among those that are not
    acknowledged; with `True` it is a frame of its own, else it comes with the next.
    """
    side = Side(compiled=compiled, confirming=True, arguments=arguments)
    reader = side.world.channel()
    for queue, name in (("q", "first"), ("r", "second"), ("q", "fourth")):
        reader.ask(basic.BasicQos(0, prefetch, False))
        reader.consume(queue, name)
    if not compiled:
        reader.protocol.lane.sites = None
    waiting = b""
    for what, count, at_once in steps:
        channel = reader.protocol._channels.get(1)
        tags = channel.consumers.tags.up_to(0) if channel is not None else []
        tag = tags[count % len(tags)] if tags and count < 12 else count
        if what in ("q", "r"):
            side.writer.send(published(str(what), b"%d" % count) * count)
            continue
        waiting += what if isinstance(what, bytes) else {
            "ack": method_frame(1, basic.BasicAck(tag, False)),
            "up to": method_frame(1, basic.BasicAck(tag if count else 0, True)),
            "nack": method_frame(1, basic.BasicNack(tag, False, at_once)),
            "nack up to": method_frame(1, basic.BasicNack(tag, True, at_once)),
            "reject": method_frame(1, basic.BasicReject(tag, at_once)),
        }[str(what)]
        if at_once:
            reader.send(waiting)
            waiting = b""
    reader.send(waiting)
    windows = [
        [(window.in_flight, window.delivered) for window in queue.inside.windows]
        for queue in map(side.world.broker.queues.get, ("q", "r")) if queue is not None
    ]  # fmt: skip
    return {**side.outcome(), "got": reader.received, "closed": reader.close_reason, "windows": windows}


@settings(deadline=None, max_examples=60)
@given(
    steps=st.lists(PUBLISHED | ANSWERS | ANSWERS | MEANWHILE, max_size=20), prefetch=st.sampled_from([0, 1, 3, 10]),
    arguments=st.just(ARGUMENTS[0]) | st.sampled_from(ARGUMENTS),
)  # fmt: skip
def test_the_lane_acknowledges_as_python_does(
    steps: list[tuple[str | bytes, int, bool]], prefetch: int, arguments: dict[str, Any]
) -> None:
    compiled, plain = (acknowledged(steps, prefetch, arguments, compiled=each) for each in (True, False))
    assert compiled == plain


@pytest.mark.parametrize("multiple", [False, True])
def test_an_acknowledgement_needs_no_python(multiple: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    side = Side(compiled=True, confirming=False)
    side.writer.publish("r", b"x")
    monkeypatch.setattr(side.reader.protocol, "handle", None)
    side.reader.say(basic.BasicAck(1, multiple))
    queue = side.world.broker.queues.get("r")
    assert queue is not None
    assert queue.inside.acknowledgements == 1
