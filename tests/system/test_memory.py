"""Every row of docs/state.md filled at once, by hostile clients over real sockets.

The memory of the broker's process must stay within the sum of its bounds and a stated allowance, and a well-behaved
client that comes afterwards must find a broker that works. Before these bounds, 400 connections with topic aliases
alone took 1.7 GB. Nothing here depends on time: each attack goes on until the broker has answered, refused or closed.
"""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress

from tests.conftest import StartBroker, TestBroker
from tests.system.views import KIB, MIB, eventually, resident, stats
from tests.system.wire import SMALL_BUFFER, WAIT_SECONDS, Peer, Type, ping, publish, subscribe

BOUNDS = {
    "inboxes_bytes_max": 8 * MIB,
    "handshakes_bytes_max": 1 * MIB,
    "sessions_bytes_max": 6 * MIB,
    "subscriptions_bytes_max": 8 * MIB,
    "stored_bytes_max": 12 * MIB,
    "outboxes_bytes_max": 12 * MIB,
    "routes_bytes_max": 4 * MIB,
    "delayed_bytes_max": 2 * MIB,  # of stored_bytes_max
}
# Of a connection: objects, buffers that grow by doubling, up to 64 KiB unsent or 16 KiB unparsed that no bound refuses.
CONNECTION_BYTES = 24 * KIB
# Of the process: code that is loaded when it is first used, free space between blocks, log lines, the HTTP views.
PROCESS_BYTES = 40 * MIB

Sockets = list[socket.socket]


def string(text: bytes) -> bytes:
    return struct.pack(">H", len(text)) + text


def packet(first: int, body: bytes) -> bytes:
    size, length = len(body), b""
    while True:
        size, low = divmod(size, 128)
        length += bytes((low | (0x80 if size else 0),))
        if not size:
            return bytes((first,)) + length + body


def connect(name: bytes, *, clean: bool = True, expiry: int = 0, will: bytes | None = None) -> bytes:
    """An MQTT 5 CONNECT."""
    properties = b"\x11" + struct.pack(">I", expiry)
    body = b"\0\4MQTT\5" + bytes(((2 if clean else 0) | (4 if will is not None else 0),)) + b"\0\0"
    body += bytes((len(properties),)) + properties + string(name)
    if will is not None:
        body += b"\0" + string(b"will") + string(will)
    return packet(0x10, body)


def publishing(topic: bytes, payload: bytes = b"", qos: int = 0, identifier: int = 0, alias: int = 0,
               retain: bool = False) -> bytes:
    properties = b"\x23" + struct.pack(">H", alias) if alias else b""
    head = string(topic) + (struct.pack(">H", identifier) if qos else b"") + bytes((len(properties),)) + properties
    return packet(0x30 | qos << 1 | retain, head + payload)


def subscribing(filter: bytes, qos: int) -> bytes:
    return packet(0x82, b"\0\1\0" + string(filter) + bytes((qos,)))


PING, PONG = b"\xc0\0", b"\xd0\0"


class Attack:
    """Sockets of one kind that stay open, whatever the broker thinks of them."""

    def __init__(self, broker: TestBroker, stack: ExitStack) -> None:
        self.broker = broker
        self.stack = stack

    async def mqtt(self, *octets: bytes, reads: bool = True, address: str = "127.0.0.1") -> socket.socket:
        """A connection that sends all this, and waits until the broker has answered a ping behind it, or has closed."""
        connection = socket.socket()
        self.stack.callback(connection.close)
        if not reads:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        connection.bind((address, 0))
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(connection, ("127.0.0.1", self.broker.addresses["mqtt"][1]))
        await self.say(connection, *octets)
        return connection

    async def say(self, connection: socket.socket, *octets: bytes) -> bytes:
        """Send; return what came, up to the PINGRESP or the close."""
        loop, got = asyncio.get_running_loop(), b""
        async with asyncio.timeout(WAIT_SECONDS):
            with suppress(ConnectionError):
                await loop.sock_sendall(connection, b"".join(octets))
                while octets[-1] == PING and not got.endswith(PONG):
                    more = await loop.sock_recv(connection, 64 * KIB)
                    if not more:
                        break
                    got += more
        return got

    async def settled(self, holds: Callable[[dict[str, float]], bool]) -> None:
        await eventually(self.broker, holds)


async def aliases(attack: Attack) -> None:
    for number in range(60):
        topics = [publishing(b"alias/%d/" % each + b"a" * 60_000, alias=each) for each in range(1, 65)]
        await attack.mqtt(connect(b"alias-%d" % number), *topics, PING)


async def small_aliases(attack: Attack) -> None:
    for number in range(60):
        topics = [publishing(b"alias/%d/" % each + b"a" * 900, alias=each) for each in range(1, 65)]
        await attack.mqtt(connect(b"small-alias-%d" % number), *topics, PING)


async def unfinished_frames(attack: Attack) -> None:
    for number in range(80):
        connection = await attack.mqtt(connect(b"half-%d" % number), PING)
        await attack.say(connection, publishing(b"t", bytes(MIB - 100))[: MIB - 200])
    await attack.settled(lambda seen: seen["inboxes_refused"] >= 50)


async def strangers(attack: Attack) -> None:
    half = connect(b"stranger", will=b"w" * 60_000)[:60_000]
    for _ in range(150):
        await attack.mqtt(half)
    await attack.settled(lambda seen: seen["handshakes_refused"] >= 100)


async def sessions(attack: Attack) -> None:
    refused = 0
    for number in range(300):
        name = b"session-%d-" % number + b"n" * 900
        connection = await attack.mqtt(connect(name, clean=False, expiry=3600, will=b"w" * 30_000))
        answer = await asyncio.get_running_loop().sock_recv(connection, 1_000)
        refused += answer[3] == 0x97
    assert refused >= 50


async def identifiers_of_qos_2(attack: Attack) -> None:
    """Every 2,048th first: what is kept of them is kept in pages of so many."""
    wanted = [each for start in range(1, 300) for each in range(start, 65_536, 2_048)][:9_000]
    for number in range(10):
        await attack.mqtt(
            connect(b"two-%d" % number, clean=False, expiry=3600),
            *(publishing(b"two", b"", 2, each) for each in wanted), PING,
        )


async def retained(attack: Attack) -> None:
    connection = await attack.mqtt(connect(b"retained"), PING)
    for start in range(0, 20_000, 1_000):
        each = (publishing(b"kept/%06d" % (start + number), b"p", retain=True) for number in range(1_000))
        await attack.say(connection, *each, PING)


async def delayed(attack: Attack) -> None:
    """Until no more is accepted, and on."""
    async with await Peer.connect(attack.broker.port) as publisher:
        for _ in range(10):
            each = (publish("later", bytes(3_000), None, None, None, None, None, {"delay": 3_600}) for _ in range(100))
            token = publisher.next_request()
            await publisher.send(*each, ping(token))
            while (answer := await publisher.frame())[0] != Type.PONG:
                assert answer[:3] == [Type.ERROR, None, "limit_exceeded"]


async def queues(attack: Attack) -> None:
    """What waits for clients that are away: many places in queues for few messages, then many messages."""
    for number in range(30):
        name = b"away-%d" % number
        connection = await attack.mqtt(
            connect(name, clean=False, expiry=3600), subscribing(b"queue/#", 1), PING,
            address="127.0.0.2",  # another principal: sessions of the others that find no room do not end these
        )
        connection.close()
    publisher = await attack.mqtt(connect(b"queues"), PING)
    for start in range(0, 4_000, 100):
        each = (publishing(b"queue/%d" % number, bytes(20 * KIB), 1, 1 + start + number) for number in range(100))
        await attack.say(publisher, *each, PING)


async def subscriptions(attack: Attack) -> None:
    connection = await attack.mqtt(connect(b"subscriber"), PING)
    for number in range(400):
        await attack.say(connection, subscribing(b"%d/" % number + b"f" * 60_000, 0), PING)
    for start in range(0, 3_000, 500):
        words = (b"/".join(b"%d-%d" % (number, each) for each in range(20)) for number in range(start, start + 500))
        await attack.say(connection, *(subscribing(b"+/" + each + b"/#", 0) for each in words), PING)


async def outboxes(attack: Attack) -> None:
    for number in range(40):
        await attack.mqtt(connect(b"deaf-%d" % number), subscribing(b"flood", 0), reads=False)
    publisher = await attack.mqtt(connect(b"flood"), PING)
    for _ in range(20):
        await attack.say(publisher, *(publishing(b"flood", bytes(10 * KIB)) for _ in range(80)), PING)


async def waiting_for_credit(attack: Attack) -> None:
    for _ in range(20):
        peer = await Peer.connect(attack.broker.port)
        attack.stack.callback(peer.close)
        for each in range(10):
            await peer.subscribe(each, "credit", credit=0)
    async with await Peer.connect(attack.broker.port) as publisher:
        for _ in range(10):
            await publisher.send(*(publish("credit", b"p") for _ in range(200)))
            await publisher.settle()


async def routes(attack: Attack) -> None:
    publisher = await attack.mqtt(connect(b"routes"), PING)
    for start in range(0, 3_000, 100):
        # Twice: a topic that is used once is not kept.
        each = [publishing(b"route/%d/" % (start + number) + b"r" * 3_000) for number in range(100)]
        await attack.say(publisher, *each, *each, PING)


async def marks(attack: Attack) -> None:
    async with await Peer.connect(attack.broker.port, user="u" * 200) as publisher:
        for start in range(0, 3_000, 500):
            each = (
                publish("marked", b"", None, None, None, None, [f"{number:0255d}", 1, 1])
                for number in range(start, start + 500)
            )
            await publisher.send(*each)
            await publisher.settle()


ATTACKS: list[Callable[[Attack], Awaitable[None]]] = [
    outboxes, waiting_for_credit, small_aliases, unfinished_frames, aliases, identifiers_of_qos_2, delayed, retained,
    queues, routes, marks, subscriptions, sessions, strangers,
]  # fmt: skip


async def test_with_every_pot_full_at_once_memory_is_within_the_sum_of_the_bounds(start_broker: StartBroker) -> None:
    broker = start_broker(
        **BOUNDS, marks_max=1_000, retained_bytes_max=4 * MIB, slow_policy="drop_newest", outbox_bytes_max=2 * MIB,
        connections_max=2_000, connections_per_address_max=2_000, handshake_seconds_max=300, linger_seconds_max=0.1,
        share_percent=100, delayed_share_percent=100,  # it attacks from one address
    )
    before = resident(broker)
    seen = {}
    with ExitStack() as stack:
        attack = Attack(broker, stack)
        for each in ATTACKS:
            grown = resident(broker)
            await each(attack)
            seen = await stats(broker)
            print(f"{each.__name__}: {(resident(broker) - grown) / MIB:+.1f} MiB")
        print({name: value for name, value in seen.items() if "bytes" in name})
        connections = seen["connections_accepted"]
        print(f"in all: {(resident(broker) - before) / MIB:.1f} MiB by {connections} connections")
        allowed = sum(BOUNDS.values()) - BOUNDS["delayed_bytes_max"] + connections * CONNECTION_BYTES + PROCESS_BYTES
        assert resident(broker) - before <= allowed, (resident(broker) - before, allowed, seen)
        for name, setting in (
            ("inbox_bytes", "inboxes_bytes_max"), ("handshake_bytes", "handshakes_bytes_max"),
            ("session_bytes", "sessions_bytes_max"), ("subscription_bytes", "subscriptions_bytes_max"),
            ("stored_bytes", "stored_bytes_max"), ("outbox_bytes", "outboxes_bytes_max"),
            ("route_bytes", "routes_bytes_max"), ("delayed_bytes", "delayed_bytes_max"),
        ):
            # It was full, or else it proves nothing; over by what is in hand, or by what every outbox has for itself.
            above = MIB if name != "outbox_bytes" else 64 * KIB * connections
            assert BOUNDS[setting] // 2 < seen[name] <= BOUNDS[setting] + above, (name, seen[name])
        assert seen["marks"] == 1_000
        assert seen["delayed_refused"] >= 100
        await works(broker)
    gone = ("inbox_bytes", "handshake_bytes", "outbox_bytes", "connections")
    await eventually(broker, lambda seen: not any(seen[name] for name in gone) and seen["subscription_bytes"] < MIB)
    await works(broker)


async def works(broker: TestBroker) -> None:
    """Clients that behave get their messages, whatever else is in there. What is full is refused with its name."""
    async with await Peer.connect(broker.port) as reader, await Peer.connect(broker.port) as publisher:
        full = (await stats(broker))["subscription_bytes"] > BOUNDS["subscriptions_bytes_max"]
        await reader.send(subscribe(1, 1, "fresh"))
        answer = await reader.frame()
        if full:
            assert answer[:3] == [Type.ERROR, 1, "limit_exceeded"]
        else:
            assert answer[:2] == [Type.OK, 1]
            assert await publisher.publish("fresh", b"still here") == 1
            assert (await reader.message()).payload == b"still here"
        assert await publisher.publish("nobody", b"") == 0
