"""The shares of a message: who gets how much of it, as the broker's core has it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_archive.arrow import pa
from fanlight_broker.core.inspection import BrokerInspection
from fanlight_spark.shares import shares, terms_of
from fanlight_spark.snapshot import Snapshot, Subscription
from tests.broker.core.parts import connect, subscribe
from tests.broker.core.sessions import World

TOPICS = ["a", "a.a", "a.b", "b", "b.a.b", "$SYS.a", "$SYSx.a"]
TEXTS = st.sampled_from(["a", "a.*", "*", "#", "a.#", "*.b", "$SYSx.*", "b.#.b"])
NATIVE = st.tuples(st.just("native"), st.integers(0, 2), TEXTS, st.sampled_from([None, None, "g", "h"]))
SPELLABLE = TEXTS.filter(lambda text: "#" not in text[:-1])
MQTT = st.tuples(st.just("mqtt"), st.integers(0, 2), SPELLABLE, st.sampled_from([None, None, "g"]))


@settings(deadline=None, max_examples=60)
@given(st.lists(NATIVE | MQTT, max_size=12, unique=True))
def test_the_shares_of_a_message_are_as_many_as_the_copies_that_a_broker_sends(
    wanted: list[tuple[str, int, str, str | None]],
) -> None:
    world = World()
    sessions = [world.connect(f"session{n}", expiry=60) for n in range(3)]
    clients = [connect(world.broker)[0] for _ in range(3)]
    for number, (kind, who, text, group) in enumerate(wanted):
        if kind == "mqtt":
            sessions[who].subscribe(text.replace(".", "/").replace("*", "+"), group=group)
        else:
            subscribe(world.broker, clients[who], number, text.encode(), group=group)
    rows, _ = BrokerInspection(world.broker, lambda: 0.0, dict, lambda: True).snapshot(place=0, places=100)
    terms = terms_of(Snapshot(tuple(Subscription(**{k: v for k, v in row.items() if k != "id"}) for row in rows)))
    at, _, weights = shares(terms, pa.array(TOPICS), pa.array(["amqp"] * len(TOPICS)))
    for number, topic in enumerate(TOPICS):
        route = world.broker.router.own_route(topic.encode(), "amqp")
        assert weights[at == number].sum() == pytest.approx(len(route.targets) + len(route.groups))


def test_no_echo_leaves_out_what_the_client_itself_has_published() -> None:
    members = [Subscription("a", client=name, group="g", no_echo=True) for name in ("me", "you")]
    terms = terms_of(Snapshot((Subscription("a", client="me", no_echo=True), *members)))
    rows, ids, weights = shares(terms, pa.array(["a"] * 3), pa.array(["amqp"] * 3), pa.array(["me", "you", None]))
    assert list(zip(rows, ids, weights, strict=True)) == [
        (0, 2, 1.0), (1, 0, 1.0), (1, 1, 1.0), (2, 0, 1.0), (2, 1, 0.5), (2, 2, 0.5),
    ]  # fmt: skip
