"""One queue with lengths, times, overflow and dead letters, beside a plain Python list that says what is so.

Time is the test's. What is compared after each step: what is ready, the answers to publishers, what died and why.
"""

from dataclasses import dataclass, field
from math import inf
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import entity_methods as entity
from tests.broker.protocols.amqp.world import Peer, World


@dataclass
class Plain:
    """The queue as it is to be. Entries of `ready`: (body, when it expires)."""

    messages_max: float
    bytes_max: float
    seconds: float
    overflow: str
    now: float = 0.0
    ready: list[tuple[bytes, float]] = field(default_factory=list)
    dead: list[tuple[bytes, str]] = field(default_factory=list)

    def publish(self, body: bytes, seconds: float) -> bool:
        """Is it confirmed?"""
        expires = self.now + min(seconds, self.seconds)
        while len(self.ready) >= self.messages_max or self.octets + len(body) > self.bytes_max:
            if self.overflow != "drop-head" or not self.ready or len(body) > self.bytes_max:
                if self.overflow != "reject-publish":
                    self.dead.append((body, "maxlen"))
                return False
            self.dead.append((self.ready.pop(0)[0], "maxlen"))
        self.ready.append((body, expires))
        if expires <= self.now:
            self.expire()
        return True

    @property
    def octets(self) -> int:
        return sum(len(body) for body, _ in self.ready)

    def expire(self) -> None:
        """The oldest, as long as they have expired."""
        while self.ready and self.ready[0][1] <= self.now:
            self.dead.append((self.ready.pop(0)[0], "expired"))

    def take(self) -> bytes | None:
        self.expire()
        return self.ready.pop(0)[0] if self.ready else None


STEPS = st.one_of(
    st.tuples(st.just("publish"), st.integers(0, 6), st.none() | st.integers(0, 3)),
    st.tuples(st.just("wait"), st.integers(1, 2), st.none()),
    st.tuples(st.sampled_from(["get", "reject", "acknowledge"]), st.none(), st.none()),
)
OVERFLOWS = st.sampled_from(["drop-head", "reject-publish", "reject-publish-dlx"])


def arguments_of(messages: int | None, octets: int | None, seconds: int | None, overflow: str) -> dict[str, Any]:
    return {
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-overflow": overflow,
        **({"x-max-length": messages} if messages is not None else {}),
        **({"x-max-length-bytes": octets} if octets is not None else {}),
        **({"x-message-ttl": seconds * 1_000} if seconds is not None else {}),
    }


def get(peer: Peer, queue: str, *, no_ack: bool) -> tuple[int, bytes, dict[str, Any]] | None:
    peer.say(basic.BasicGet(queue=queue, no_ack=no_ack))
    (got,) = peer.got()
    if not isinstance(got.method, basic.BasicGetOk):
        return None
    headers = got.properties.headers if got.properties is not None else None
    return got.method.delivery_tag, got.body, dict(headers or {})


@settings(max_examples=80, deadline=None)
@given(
    messages=st.none() | st.integers(1, 3), octets=st.none() | st.integers(1, 12),
    seconds=st.none() | st.integers(0, 3), overflow=OVERFLOWS, steps=st.lists(STEPS, max_size=25),
)
def test_a_queue_does_what_a_plain_list_does(
    messages: int | None, octets: int | None, seconds: int | None, overflow: str,
    steps: list[tuple[str, int | None, int | None]],
) -> None:
    world = World()
    peer = world.channel()
    peer.declare("dead")
    peer.declare("q", arguments=arguments_of(messages, octets, seconds, overflow))
    peer.ask(entity.ConfirmSelect())
    plain = Plain(messages or inf, octets or inf, inf if seconds is None else seconds, overflow, world.now)
    for number, (step, first, second) in enumerate(steps):
        match step:
            case "publish":
                body = b"%x" % (number % 16) * (first or 0)
                peer.publish("q", body, expiration=None if second is None else str(second * 1_000))
                (answer,) = peer.got()
                confirmed = plain.publish(body, inf if second is None else second)
                assert isinstance(answer.method, basic.BasicAck if confirmed else basic.BasicNack)
            case "wait":
                world.pass_time(first or 0)
                plain.now = world.now
                plain.expire()
            case _:
                got, wanted = get(peer, "q", no_ack=step == "get"), plain.take()
                assert (None if got is None else got[1]) == wanted
                if got is not None and wanted is not None and step == "reject":
                    peer.say(basic.BasicReject(got[0], requeue=False))
                    plain.dead.append((wanted, "rejected"))
                elif got is not None and wanted is not None and step == "acknowledge":
                    peer.say(basic.BasicAck(got[0]))
        assert peer.counts("q")[0] == len(plain.ready)
    dead = []
    while (letter := get(peer, "dead", no_ack=True)) is not None:
        dead.append((letter[1], letter[2]["x-death"][0]["reason"]))
    assert dead == plain.dead
    wanted = plain.take()
    while wanted is not None:
        left = get(peer, "q", no_ack=True)
        assert left is not None
        assert left[1] == wanted
        wanted = plain.take()
    assert get(peer, "q", no_ack=True) is None
