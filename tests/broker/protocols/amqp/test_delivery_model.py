"""Two queues and their consumers against a plain model, in random steps: consumers that acknowledge and that do not,
that stop reading, whose channels and connections end; queues that end and begin again; publishes cut anywhere.

After each step nothing waits in a queue that has a consumer with room, and each message is in one place, unless it
went with its queue, or unread with a connection of a consumer that does not acknowledge.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from tests.broker.protocols.amqp.world import Peer, World, published

QUEUES = {"ends": {"auto_delete": True, "arguments": {"x-expires": 86_400_000}}, "stays": {}}
CHANNELS = (1, 2)
AT = st.sampled_from([0, 0, 1, 1, 2])  # of the clients
OUTBOX = 4_096  # bytes: a few of the larger messages
SIZES = (0, 40, 900, 1_500)


@dataclass(eq=False)
class Consumer:
    queue: str
    no_ack: bool
    prefetch: int
    newest: int = -1  # of those that it was the first to get


@dataclass(eq=False)
class Held:
    """A delivery that its client has to acknowledge. by: None for basic.get."""

    queue: str
    message: int
    by: Consumer | None


@dataclass(eq=False)
class Channel:
    most: int = 0  # that its consumers hold together
    consumers: dict[str, Consumer] = field(default_factory=dict)
    held: dict[int, Held] = field(default_factory=dict)  # by tag

    def full(self, consumer: Consumer) -> bool:
        by = [each.by for each in self.held.values() if each.by is not None]
        return by.count(consumer) >= consumer.prefetch or 0 < self.most <= len(by)


@dataclass(eq=False)
class Client:
    peer: Peer
    channels: dict[int, Channel] = field(default_factory=lambda: {number: Channel() for number in CHANNELS})


class Delivery(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World(outbox_bytes_max=OUTBOX)
        self.publisher = self.world.channel()
        self.publisher.ask(entity.ConfirmSelect())
        self.publisher.ask(entity.ExchangeDeclare(exchange="both", type="fanout"))
        self.clients: list[Client] = []
        self.waiting: dict[str, set[int]] = {}  # of each queue that exists; also what is on its way, unread
        self.seen: dict[str, set[int]] = {}  # delivered, and perhaps again
        self.published = self.tags = 0
        self.looks, self.every = 0, 0
        self.world.broker.ledger.turn_ends = 0.5
        for queue in QUEUES:
            self.declare(queue)
        for number in CHANNELS:
            self.connect()
            self.consume(number - 1, number, "stays", 0, 0)

    def clock(self) -> float:
        """Each second or third look at it says that the turn is over, if it is to."""
        self.looks += 1
        return float(self.every and self.looks % self.every == 0)

    # -- steps ------------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.clients) < 3)
    @rule()
    def connect(self) -> None:
        self.world.broker.ledger.clock = None  # logins would wait until it goes on
        peer = self.world.channel()
        peer.ask(first.ChannelOpen(), 2)
        self.world.broker.ledger.clock = self.clock
        self.clients.append(Client(peer))

    @rule(queue=st.sampled_from([*QUEUES]))
    def declare(self, queue: str) -> None:
        self.publisher.declare(queue, **QUEUES[queue])
        self.publisher.ask(entity.QueueBind(queue=queue, exchange="both"))
        self.waiting.setdefault(queue, set())
        self.seen.setdefault(queue, set())

    @rule(
        to=st.sampled_from([*QUEUES, "both"]),
        sizes=st.lists(st.sampled_from(SIZES), min_size=1, max_size=12),
        cut=st.none() | st.integers(1, 999),
        mortal=st.booleans(),
    )
    def publish(self, to: str, sizes: list[int], cut: int | None, mortal: bool) -> None:
        octets, first_one = b"", self.published
        for size in sizes:
            octets += published(
                "" if to == "both" else to,
                b"%d " % self.published + bytes(size),
                "both" if to == "both" else "",
                expiration="86400000" if mortal else None,
            )
            for queue in self.waiting.keys() & (QUEUES.keys() if to == "both" else {to}):
                self.waiting[queue].add(self.published)
            self.published += 1
        at = len(octets) * (cut or 0) // 1_000
        self.publisher.send(octets[:at], octets[at:])
        assert self.published > first_one

    @rule(
        at=AT,
        number=st.sampled_from(CHANNELS),
        queue=st.sampled_from([*QUEUES]),
        prefetch=st.integers(0, 4),
        rank=st.sampled_from([0, 0, 0, 1]),
    )
    def consume(self, at: int, number: int, queue: str, prefetch: int, rank: int) -> None:
        """prefetch: 0 for a consumer that does not acknowledge."""
        client = self.pick(at)
        if client is None or queue not in self.waiting or len(client.channels[number].consumers) > 2:
            return
        self.tags += 1
        made = Consumer(queue, prefetch == 0, prefetch or 1_000)
        client.channels[number].consumers[str(self.tags)] = made
        client.peer.say(basic.BasicQos(prefetch_count=prefetch), number)
        client.peer.say(
            basic.BasicConsume(
                queue=queue,
                consumer_tag=str(self.tags),
                no_ack=made.no_ack,
                arguments={"x-priority": rank} if rank else {},
            ),
            number,
        )

    @rule(at=AT, number=st.sampled_from(CHANNELS), most=st.integers(0, 3))
    def limit_together(self, at: int, number: int, most: int) -> None:
        client = self.pick(at)
        if client is not None:
            client.channels[number].most = most
            client.peer.say(basic.BasicQos(prefetch_count=most, global_=True), number)

    @rule(at=AT, number=st.sampled_from(CHANNELS), queue=st.sampled_from([*QUEUES]), no_ack=st.booleans())
    def get(self, at: int, number: int, queue: str, no_ack: bool) -> None:
        client = self.pick(at)
        if client is not None and queue in self.waiting:
            self.getting = queue, no_ack
            client.peer.say(basic.BasicGet(queue=queue, no_ack=no_ack), number)
            self.observe(client)

    @rule(
        at=AT,
        number=st.sampled_from(CHANNELS),
        nth=st.integers(0, 3),
        multiple=st.booleans(),
        how=st.sampled_from(["ack", "ack", "ack", "requeue", "reject"]),
    )
    def answer(self, at: int, number: int, nth: int, multiple: bool, how: str) -> None:
        client = self.pick(at)
        tags = sorted(client.channels[number].held) if client is not None else []
        if client is None or nth >= len(tags):
            return
        for tag in tags[: nth + 1] if multiple else [tags[nth]]:
            held = client.channels[number].held.pop(tag)
            if how == "requeue":
                self.waiting[held.queue].add(held.message)
        client.peer.say(
            basic.BasicAck(tags[nth], multiple)
            if how == "ack"
            else basic.BasicNack(tags[nth], multiple, how == "requeue"),
            number,
        )

    @rule(at=AT, number=st.sampled_from(CHANNELS), nth=st.integers(0, 2))
    def cancel(self, at: int, number: int, nth: int) -> None:
        client = self.pick(at)
        tags = [*client.channels[number].consumers] if client is not None else []
        if client is not None and nth < len(tags):
            client.peer.say(basic.BasicCancel(tags[nth], False), number)
            self.observe(client)
            self.left(client.channels[number].consumers.pop(tags[nth]))

    @rule(at=AT, number=st.sampled_from(CHANNELS))
    def close_channel(self, at: int, number: int) -> None:
        client = self.pick(at)
        if client is not None:
            self.give_back(client.channels[number])  # the other channel may get it at once
            client.channels[number] = Channel()
            client.peer.say(first.ChannelClose(200, "", 0, 0), number)
            self.observe(client)
            client.peer.say(first.ChannelOpen(), number)

    @rule(at=AT)
    def vanish(self, at: int) -> None:
        """What it has not read is lost if nobody is to acknowledge it."""
        if at < len(self.clients):
            client = self.clients.pop(at)
            while client.peer.protocol.outbox.size:
                client.peer.received += client.peer.protocol.outbox.read()
            self.observe(client)
            client.peer.vanish()
            for channel in client.channels.values():
                self.give_back(channel)

    @rule(at=AT)
    def stop_reading_or_go_on(self, at: int) -> None:
        if at < len(self.clients) and self.clients[at].peer.reads:
            self.clients[at].peer.reads = False
        elif at < len(self.clients):
            self.clients[at].peer.read_all()

    @rule(every=st.sampled_from([0, 2, 3]))
    def make_haste(self, every: int) -> None:
        self.every = every

    @rule()
    def pass_time(self) -> None:
        self.world.pass_time(1.0)

    @precondition(lambda self: all(client.peer.reads for client in self.clients))
    @rule(queue=st.sampled_from([*QUEUES]))
    def delete(self, queue: str) -> None:
        self.publisher.ask(entity.QueueDelete(queue=queue))
        self.ended(queue)

    # -- the model --------------------------------------------------------------------------------------------------

    def pick(self, at: int) -> Client | None:
        """One that reads: only that knows what it has."""
        return self.clients[at] if at < len(self.clients) and self.clients[at].peer.reads else None

    def consumers(self, queue: str) -> Iterator[tuple[Client, Channel, Consumer]]:
        for client in self.clients:
            for channel in client.channels.values():
                for consumer in channel.consumers.values():
                    if consumer.queue == queue:
                        yield client, channel, consumer

    def left(self, consumer: Consumer) -> None:
        if consumer.queue in self.waiting and QUEUES[consumer.queue] and not any(self.consumers(consumer.queue)):
            self.ended(consumer.queue)

    def give_back(self, channel: Channel) -> None:
        for held in channel.held.values():
            if held.queue in self.waiting:
                self.waiting[held.queue].add(held.message)
        gone, channel.consumers, channel.held = channel.consumers, {}, {}
        for consumer in gone.values():
            self.left(consumer)

    def ended(self, queue: str) -> None:
        """With all that was in it."""
        self.waiting.pop(queue, None)
        self.seen.pop(queue, None)
        for client in self.clients:
            for channel in client.channels.values():
                channel.consumers = {tag: each for tag, each in channel.consumers.items() if each.queue != queue}
                channel.held = {tag: each for tag, each in channel.held.items() if each.queue != queue}

    def observe(self, client: Client) -> None:
        for got in client.peer.got():
            channel, method = client.channels[got.channel], got.method
            if isinstance(method, basic.BasicDeliver):
                consumer = channel.consumers.get(method.consumer_tag)
                if consumer is None:
                    continue  # of a queue that has ended meanwhile
                self.came(channel, consumer.queue, consumer.no_ack, consumer, method, int(got.body.split()[0]))
            elif isinstance(method, basic.BasicGetOk):
                queue, no_ack = self.getting
                self.came(channel, queue, no_ack, None, method, int(got.body.split()[0]))

    def came(self, channel: Channel, queue: str, no_ack: bool, by: Consumer | None, method: Any, message: int) -> None:
        assert message in self.waiting[queue], "it was not to be delivered now"
        self.waiting[queue].remove(message)
        assert method.redelivered == (message in self.seen[queue])
        if by is not None and not method.redelivered:
            assert message > by.newest, "a later one came before it"
            by.newest = message
        if not no_ack:
            self.seen[queue].add(message)
            assert by is None or not channel.full(by)
            channel.held[method.delivery_tag] = Held(queue, message, by)

    @invariant()
    def nothing_waits_for_a_consumer_with_room(self) -> None:
        self.publisher.got()
        for client in self.clients:
            self.observe(client)
        for queue in QUEUES:
            found = self.world.broker.queues.get(queue)
            assert (found is not None) == (queue in self.waiting)
            if found is None:
                continue
            ready = len(found.inside.queue)
            consumers = [*self.consumers(queue)]
            assert len(found.consumers) >= len(consumers)
            if all(client.peer.reads for client, _, _ in consumers):
                assert ready == len(self.waiting[queue])
            if ready:
                for client, channel, consumer in consumers:
                    assert not client.peer.reads or (not consumer.no_ack and channel.full(consumer)), "it has room"

    def teardown(self) -> None:
        for client in self.clients:
            client.peer.read_all()
        self.nothing_waits_for_a_consumer_with_room()


Delivery.TestCase.settings = settings(max_examples=20, stateful_step_count=50, deadline=None)
TestDelivery = Delivery.TestCase
