"""What the owner of exchanges is asked: for the broker's own topics, and to keep what is durable."""

from typing import Any

import pytest

from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.exchanges import AmqpExchange, Binding, Exchanges
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode


class Recorder:
    """What the owner is asked, as both of its ports."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.refuses = False

    def bind(self, queue: str, key: str) -> None:
        if self.refuses:
            raise AmqpError(ReplyCode.ACCESS_REFUSED, "not yours")
        self.calls.append(("bind", queue, key))

    def unbind(self, queue: str, key: str) -> None:
        self.calls.append(("unbind", queue, key))

    def watch(self, key: str) -> None:
        self.calls.append(("watch", key))

    def unwatch(self, key: str) -> None:
        self.calls.append(("unwatch", key))

    def exchange_begun(self, exchange: AmqpExchange) -> None:
        self.calls.append(("begun", exchange.name))

    def exchange_ended(self, exchange: AmqpExchange) -> None:
        self.calls.append(("ended", exchange.name))

    def bound(self, binding: Binding) -> None:
        self.calls.append(("bound", *binding))

    def unbound(self, binding: Binding) -> None:
        self.calls.append(("unbound", *binding))

    def taken(self) -> list[tuple[Any, ...]]:
        taken, self.calls = self.calls, []
        return taken


def test_a_shared_amq_topic_is_the_owners() -> None:
    topics = Recorder()
    exchanges = Exchanges("/", {"q", "r"}, topics=topics)
    exchanges.bind("q", "amq.topic", "a.*")
    exchanges.bind("q", "amq.topic", "a.*", {"n": 1})
    exchanges.bind("r", "amq.topic", "a.*", {"n": 1})
    exchanges.bind("r", "amq.topic", "a.*", {"n": 2})
    exchanges.bind("r", "amq.topic", "a.*")
    assert topics.taken() == [("bind", "q", "a.*"), ("bind", "r", "a.*")]
    found = exchanges.publish("amq.topic", "a.b", more_keys=("c", "a.b"))
    assert (found.queues, found.topics, found.unroutable) == ((), ("a.b", "c"), False)
    exchanges.unbind("q", "amq.topic", "a.*")
    exchanges.unbind("r", "amq.topic", "a.*", {"n": 1})
    exchanges.unbind("r", "amq.topic", "a.*")
    assert topics.taken() == []
    exchanges.unbind("q", "amq.topic", "a.*", {"n": 1})
    exchanges.queue_ended("r")
    assert topics.taken() == [("unbind", "q", "a.*"), ("unbind", "r", "a.*")]


def test_exchanges_behind_a_shared_amq_topic_get_others_messages() -> None:
    topics = Recorder()
    exchanges = Exchanges("/", {"q", "r"}, topics=topics)
    exchanges.declare("behind", "fanout")
    exchanges.declare("also", "fanout")
    exchanges.bind("q", "behind", "")
    exchanges.bind_exchange("behind", "amq.topic", "a.#")
    exchanges.bind_exchange("also", "amq.topic", "a.#")
    exchanges.bind_exchange("amq.topic", "behind", "")
    assert topics.taken() == [("watch", "a.#")]
    of_a_client = exchanges.publish("amq.topic", "a.b")
    assert (of_a_client.queues, of_a_client.topics) == (("q",), ("a.b",))
    of_others = exchanges.publish_onward("amq.topic", "a.b")
    assert (of_others.queues, of_others.topics) == (("q",), ())
    assert exchanges.publish("behind", "z").topics == ("z",)
    assert exchanges.publish_onward("amq.topic", "z").unroutable
    exchanges.delete("behind")
    assert topics.taken() == []
    exchanges.delete("also")
    assert topics.taken() == [("unwatch", "a.#")]


def test_a_binding_that_the_owner_refuses_is_not_there() -> None:
    topics = Recorder()
    topics.refuses = True
    exchanges = Exchanges("/", {"q"}, topics=topics)
    with pytest.raises(AmqpError, match="not yours"):
        exchanges.bind("q", "amq.topic", "a", {"n": 1})
    assert list(exchanges.bindings()) == []
    topics.refuses = False
    exchanges.bind("q", "amq.topic", "a")
    assert topics.taken() == [("bind", "q", "a")]


def test_the_keeper_hears_of_what_is_durable() -> None:
    keeper = Recorder()
    exchanges = Exchanges("/", {"q"}, keeper=keeper)
    assert keeper.taken() == []  # amq.* are there in any case
    exchanges.declare("d", "direct", durable=True)
    exchanges.declare("t", "direct")
    assert keeper.taken() == [("begun", "d")]
    exchanges.bind("q", "t", "k")
    exchanges.bind_exchange("t", "d", "k")
    assert keeper.taken() == []
    exchanges.bind("q", "d", "k", {"n": 1})
    exchanges.bind_exchange("d", "amq.direct", "k")
    exchanges.bind("q", "d", "k", {"n": 1})
    assert keeper.taken() == [
        ("bound", "d", "q", True, "k", {"n": 1}), ("bound", "amq.direct", "d", False, "k", {}),
    ]  # fmt: skip
    exchanges.delete("d")
    assert keeper.taken() == [
        ("unbound", "d", "q", True, "k", {"n": 1}), ("unbound", "amq.direct", "d", False, "k", {}), ("ended", "d"),
    ]  # fmt: skip
