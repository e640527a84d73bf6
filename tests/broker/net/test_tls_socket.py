"""TLS under the poller, by pairs of real sockets and Python's own client: every cut of the bytes, every end.

The poller's turns are called here, so that each piece that is sent is one read.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fanlight_broker.net.tls import TlsFiles, read
from fanlight_broker.net.tls_handshake import RECORDS_BYTES
from fanlight_broker.net.tls_memory import POLLER, TlsMemory
from fanlight_broker.net.tls_socket import TlsSocket
from fanlight_broker.wire.inbox import ReceiveBuffer
from fanlight_broker.wire.ledger import Pot
from tests.broker.net.test_tcp import MIB, Owner, World, polling
from tests.certificates import Certificates
from tests.system.test_transports import soon

KIB = 1024
VERSIONS = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])


class Client:
    """The peer: it encrypts and decrypts in memory, and its socket is the test's to use."""

    def __init__(self, signed: Certificates, version: ssl.TLSVersion | None) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = signed.context(version=version).wrap_bio(
            self.incoming, self.outgoing, server_hostname="localhost"
        )
        self.socket, self.ours = socket.socketpair()
        for each in (self.socket, self.ours):
            each.setblocking(False)

    def encrypted(self, octets: bytes) -> bytes:
        """What carries these bytes."""
        for at in range(0, len(octets), 16 * KIB):
            self.tls.write(octets[at : at + 16 * KIB])
        return self.outgoing.read()

    def read(self) -> bytes:
        """What has come, decrypted. Raises ssl.SSLError."""
        try:
            while octets := self.socket.recv(MIB):
                self.incoming.write(octets)
            self.incoming.write_eof()
        except BlockingIOError:
            pass
        found = b""
        while True:
            try:
                octets = self.tls.read(MIB)
            except ssl.SSLWantReadError:
                return found
            if not octets:
                return found
            found += octets

    def last(self, octets: bytes) -> bytes:
        """As `encrypted`, with close_notify behind it."""
        octets = self.encrypted(octets)
        with pytest.raises(ssl.SSLWantReadError):
            self.tls.unwrap()
        return octets + self.outgoing.read()

    def told_the_end(self) -> bool:
        """Has the broker sent close_notify, and then the end of its half of the stream?"""
        try:
            return self.tls.read(1) == b"" and self.socket.recv(1) == b""
        except ssl.SSLZeroReturnError:
            return self.socket.recv(1) == b""


def shaken(signed: Certificates, client: Client, early: bytes) -> tuple[ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]:
    """The broker's side of a handshake in memory. `early`: what the client sends with the last of it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = read(TlsFiles(signed.server)).wrap_bio(incoming, outgoing, server_side=True)
    done = set[ssl.SSLObject]()
    while server not in done:
        for side in (client.tls, server):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                pass
            if side is client.tls and side in done and early:
                client.tls.write(early)
                early = b""
            incoming.write(client.outgoing.read())
            client.incoming.write(outgoing.read())
    if client.tls not in done:  # TLS 1.2: the broker's Finished is the last
        client.tls.do_handshake()
    return server, incoming, outgoing


class Secured:
    """A TlsSocket under the poller that is read from, its owner and its peer."""

    def __init__(
        self, world: World, signed: Certificates, version: ssl.TLSVersion | None = None, *, early: bytes = b"",
        memory: TlsMemory | None = None,
    ) -> None:
        self.world = world
        self.owner, self.client = Owner(world.ledger), Client(signed, version)
        objects = shaken(signed, self.client, early)
        self.socket = TlsSocket(world.poller, self.client.ours.detach(), "192.0.2.1", 7)
        self.socket.secure(*objects, ReceiveBuffer(RECORDS_BYTES), memory)
        self.socket.attach(self.owner, self.owner)
        self.socket.by_python()

    def send(self, octets: bytes, cut: int) -> None:
        """Each piece is one read of the broker's."""
        for at in range(0, len(octets), cut):
            rest = octets[at : at + cut]
            while rest:
                rest = rest[self.client.socket.send(rest) :]
                self.world.poller.turn()

    async def ended(self) -> None:
        self.client.socket.close()
        await soon(lambda: "lost" in self.owner.told)


@asynccontextmanager
async def pair(
    signed: Certificates, version: ssl.TLSVersion | None = None, early: bytes = b""
) -> AsyncIterator[Secured]:
    async with polling() as world:
        one = Secured(world, signed, version, early=early)
        yield one
        await one.ended()
        assert world.ledger.inboxes.used == 0


@VERSIONS
@pytest.mark.parametrize(
    ("cut", "sizes"), [(1, [1, 100, 700]), (5, [1, 4_000]), (1_000, [1, 16_384, 40_000]), (MIB, [1, 16_385, 300_000])]
)
async def test_what_comes_is_read_in_order_however_it_is_cut(
    version: ssl.TLSVersion, cut: int, sizes: list[int], signed: Certificates
) -> None:
    async with pair(signed, version) as one:
        sent = b""
        for octets in map(os.urandom, sizes):
            one.send(one.client.encrypted(octets), cut)
            sent += octets
            await soon(lambda sent=sent: one.owner.read == sent)
        one.send(b"".join(one.client.encrypted(bytes([n])) for n in range(100)), cut)
        await soon(lambda: one.owner.read == sent + bytes(range(100)))


async def test_what_comes_with_the_last_of_the_handshake_is_read_without_more(signed: Certificates) -> None:
    async with pair(signed, early=b"early") as one:
        await soon(lambda: one.owner.read == b"early")
        one.send(one.client.encrypted(b" late"), MIB)
        assert one.owner.read == b"early late"


async def test_a_part_of_a_record_is_counted_and_given_up_with_the_connection(signed: Certificates) -> None:
    async with pair(signed) as one:
        record = one.client.encrypted(bytes(10_000))
        one.send(record[:7_000], 3_000)
        assert (one.owner.read, one.world.ledger.inboxes.used) == (b"", 7_000)
        one.client.socket.shutdown(socket.SHUT_WR)
        await soon(lambda: one.owner.told == ["eof", "lost"])
        assert one.world.ledger.inboxes.used == 0


async def test_where_the_inbox_has_little_space_a_record_is_handed_on_in_parts(signed: Certificates) -> None:
    async with pair(signed) as one:
        one.owner.inbox.read_max = 100
        parts: list[int] = []
        one.owner.on_read = lambda: parts.append(len(one.owner.read))
        octets = os.urandom(3_000)
        one.send(one.client.encrypted(octets) + one.client.encrypted(b"end"), MIB)
        assert one.owner.read == octets + b"end"
        assert parts[:3] == [100, 200, 300]


async def test_what_was_received_waits_while_it_is_paused_and_goes_on_without_the_socket(signed: Certificates) -> None:
    async with pair(signed) as one:
        one.owner.inbox.read_max = 100
        one.owner.on_read = one.socket.pause_reading
        octets = os.urandom(350)
        one.send(one.client.encrypted(octets), MIB)
        for size in (100, 200, 300, 350):
            await soon(lambda size=size: len(one.owner.read) == size)
            one.world.poller.turn()
            assert len(one.owner.read) == size
            one.socket.resume_reading()
        assert one.owner.read == octets


async def test_the_end_of_the_stream_waits_until_what_came_before_is_taken(signed: Certificates) -> None:
    async with pair(signed) as one:
        one.owner.on_read = one.socket.pause_reading
        one.send(one.client.last(b"last"), MIB)
        one.world.poller.turn()
        assert (one.owner.read, one.owner.told) == (b"last", [])
        one.socket.resume_reading()
        await soon(lambda: one.owner.told == ["eof", "lost"])


async def test_where_a_turn_is_over_the_rest_has_another(signed: Certificates) -> None:
    async with pair(signed) as one:
        one.owner.inbox.read_max = 20_000

        def end_turn() -> None:
            one.world.ledger.turn_ends = 0.0

        one.owner.on_read = end_turn
        octets = os.urandom(70_000)
        rounds = one.world.poller.rounds
        one.client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MIB)
        assert one.client.socket.send(sent := one.client.encrypted(octets)) == len(sent)
        await soon(lambda: one.owner.read == octets)
        assert one.world.poller.rounds - rounds >= 4


@VERSIONS
async def test_a_huge_write_goes_out_whole_through_a_small_buffer_and_then_close_notify(
    version: ssl.TLSVersion, signed: Certificates
) -> None:
    async with polling() as world:
        one = Secured(world, signed, version)
        with socket.socket(fileno=os.dup(one.socket.fd)) as same:
            same.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * KIB)
        octets = os.urandom(2 * MIB)
        one.socket.write(octets)
        assert one.socket.get_write_buffer_size() > len(octets) - 64 * KIB
        got = one.client.read()
        world.poller.turn()
        one.socket.write(b"more")
        one.socket.close()
        assert one.owner.told == []
        while len(got) < len(octets) + 4:
            world.poller.turn()
            got += one.client.read()
        assert got == octets + b"more"
        await soon(lambda: one.owner.told == ["lost"])
        assert one.client.read() == b""
        assert one.client.told_the_end()
        one.client.socket.close()


async def test_room_is_told_once_everything_is_out(signed: Certificates) -> None:
    async with pair(signed) as one:
        one.socket.write(b"little")
        assert (one.socket.get_write_buffer_size(), one.owner.told) == (0, [])
        one.socket.write(bytes(4 * MIB))
        assert one.socket.get_write_buffer_size() > 0
        got = b""
        while len(got) < 4 * MIB + 6:
            assert not one.socket.get_write_buffer_size() or one.owner.told == []
            got += one.client.read()
            one.world.poller.turn()
        assert one.owner.told == ["room"]
        assert one.socket.get_write_buffer_size() == 0


@VERSIONS
async def test_after_the_end_of_our_half_what_comes_is_thrown_away_and_nothing_is_reset(
    version: ssl.TLSVersion, signed: Certificates
) -> None:
    async with pair(signed, version) as one:
        assert one.socket.can_write_eof()
        one.socket.write(b"goodbye")
        one.socket.write_eof()
        one.socket.write(b"nothing")
        one.send(one.client.encrypted(bytes(50_000)), 10_000)
        one.send(b"no TLS at all", MIB)
        assert one.client.read() == b"goodbye"
        assert one.client.told_the_end()
        assert (one.owner.read, one.owner.told) == (b"", [])
        one.client.socket.close()
        await soon(lambda: one.owner.told == ["eof", "lost"])
        assert one.owner.error is None


@VERSIONS
async def test_close_notify_of_the_peer_ends_the_connection_and_is_answered(
    version: ssl.TLSVersion, signed: Certificates
) -> None:
    async with pair(signed, version) as one:
        one.send(one.client.last(b"last"), MIB)
        assert (one.owner.read, one.owner.told) == (b"last", ["eof"])
        one.client.incoming.write(one.client.socket.recv(KIB))
        one.client.tls.unwrap()
        await soon(lambda: one.owner.told == ["eof", "lost"])
        assert one.owner.error is None


@VERSIONS
async def test_a_record_that_was_changed_ends_the_connection_with_an_alert(
    version: ssl.TLSVersion, signed: Certificates
) -> None:
    async with pair(signed, version) as one:
        good, bad = one.client.encrypted(b"good"), bytearray(one.client.encrypted(b"bad"))
        bad[-1] ^= 1
        one.send(good + bytes(bad), MIB)
        await soon(lambda: one.owner.told == ["lost"])
        assert one.owner.read == b"good"
        assert isinstance(one.owner.error, ssl.SSLError)
        with pytest.raises(ssl.SSLError, match=r"(?i)bad.record.mac"):
            one.client.read()


@pytest.mark.parametrize(
    "octets", [b"\x17\x03\x03\xff\xff", b"GET / HTTP/1.1\r\n\r\n", b"\x17\x03\x03\0\0", bytes(100)]
)
async def test_what_is_no_record_ends_the_connection(octets: bytes, signed: Certificates) -> None:
    async with pair(signed) as one:
        one.send(octets, 3)
        one.client.socket.shutdown(socket.SHUT_WR)
        await soon(lambda: "lost" in one.owner.told)
        assert one.owner.read == b""


@pytest.mark.parametrize("end", ["close", "abort"])
async def test_a_socket_that_is_closed_while_it_is_read_from_reads_no_more(end: str, signed: Certificates) -> None:
    async with pair(signed) as one:
        one.owner.inbox.read_max = 100
        one.owner.on_read = getattr(one.socket, end)
        one.send(one.client.encrypted(bytes(1_000)), MIB)
        await soon(lambda: one.owner.told == ["lost"])
        assert len(one.owner.read) == 100
        one.socket.abort()
        one.socket.close()
        await asyncio.sleep(0)
        assert one.owner.told == ["lost"]


async def test_one_that_is_behind_keeps_nobody_waiting(signed: Certificates) -> None:
    async with polling() as world:
        slow, others = Secured(world, signed), [Secured(world, signed) for _ in range(3)]
        slow.owner.inbox.read_max = 1_000
        order: list[str] = []

        def end_turn() -> None:
            order.append("slow")
            world.ledger.turn_ends = 0.0

        slow.owner.on_read = end_turn
        for n, each in enumerate(others):
            each.owner.on_read = lambda n=n: order.append(str(n))
        for _ in range(4):
            slow.client.socket.send(slow.client.encrypted(os.urandom(10_000)))
        for each in others:
            each.client.socket.send(each.client.encrypted(b"x"))
        await soon(lambda: len(slow.owner.read) == 40_000)
        assert max(order.index(str(n)) for n in range(3)) < order.count("slow")
        for each in (slow, *others):
            await each.ended()


async def test_its_buffers_are_charged_for_the_most_they_held(signed: Certificates) -> None:
    pot = Pot("secured", MIB)
    memory = TlsMemory(pot)
    assert memory.begin()
    memory.settle(POLLER)
    async with polling() as world:
        one = Secured(world, signed, memory=memory)
        one.send(one.client.encrypted(b"x"), MIB)
        assert pot.used == POLLER.state + 12 * KIB
        one.send(one.client.encrypted(bytes(200_000)), MIB)
        one.socket.write(bytes(200_000))
        assert pot.used == POLLER.state + 48 * KIB
        await one.ended()
    memory.end()
    assert pot.used == 0


def test_the_buffer_for_records_holds_two(signed: Certificates) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = read(TlsFiles(signed.server)).wrap_bio(incoming, outgoing, server_side=True)

    async def main() -> None:
        async with polling() as world:
            ours, peer = socket.socketpair()
            one = TlsSocket(world.poller, ours.detach(), "192.0.2.1", 7)
            with pytest.raises(ValueError, match="for records"):
                one.secure(tls, incoming, outgoing, ReceiveBuffer(32 * KIB), None)
            del one
            peer.close()

    asyncio.run(main())
