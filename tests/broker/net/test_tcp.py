"""Sockets under the poller, by pairs of real sockets: what they tell their owner, and what they leave behind."""

import asyncio
import gc
import os
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from fanlight_broker.core.turns import TURN_SECONDS
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.poller import Poller
from fanlight_broker.net.tcp import ListeningSocket, Socket
from fanlight_broker.protocols.native.lane import NativeLane
from fanlight_broker.wire.inbox import Inbox, ReceiveBuffer
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.routes import RouteCache
from tests.system.test_transports import give_up, soon

MIB = 1 << 20


class Owner:
    """Both sides of a connection: what the socket tells, and what has been read."""

    def __init__(self, ledger: Ledger) -> None:
        outbox = Outbox(ledger, MIB, "drop_newest")
        self.inbox = Inbox(ReceiveBuffer(), ledger)
        self.lane = NativeLane(self.inbox, outbox, RouteCache(10), ledger, frame_max=MIB, control_max=MIB)
        self.read = b""
        self.told: list[str] = []
        self.error: Exception | None = None
        self.on_read: Callable[[], None] = lambda: None

    def receive(self, now: float) -> None:
        self.read += self.inbox.first(MIB)
        self.inbox.clear()
        self.on_read()

    def take(self, event: int, now: float) -> None:
        self.receive(now)

    def resume_writing(self) -> None:
        self.told.append("room")

    def eof_received(self) -> bool:
        self.told.append("eof")
        return False

    def peer_gone(self) -> None:
        self.told.append("gone")

    def connection_lost(self, error: Exception | None) -> None:
        self.told.append("lost")
        self.error = error

    def fault(self) -> None:
        self.told.append("fault")


class World:
    def __init__(self) -> None:
        self.ledger = Ledger(MIB, lambda: None)
        self.poller = Poller(asyncio.get_running_loop(), Flusher(self.ledger, give_up))

    def pair(self) -> tuple[Socket, Owner, socket.socket]:
        """A socket under the poller that is read from, its owner, and the peer."""
        ours, peer = socket.socketpair()
        ours.setblocking(False)
        watched, owner = Socket(self.poller, ours.detach(), "192.0.2.1", 7), Owner(self.ledger)
        watched.attach(owner, owner)
        watched.by_python()
        return watched, owner, peer

    def listen(self, accepted: Callable[[Socket], None]) -> tuple[ListeningSocket, socket.socket]:
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setblocking(False)
        watched = ListeningSocket(self.poller, listening, accepted, lambda error: None)
        watched.open()
        return watched, listening


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@asynccontextmanager
async def polling() -> AsyncIterator[World]:
    """Afterwards no descriptor must be left that was not there before."""
    gc.collect()  # what other tests of this process have left, which may be collected at any time
    before = descriptors()
    world = World()
    yield world
    await soon(lambda: world.poller.count == 0)  # `connection_lost` has a turn of its own
    world.poller.close()
    assert descriptors() == before


async def test_what_comes_is_read_in_order_and_the_end_is_told() -> None:
    async with polling() as world:
        watched, owner, peer = world.pair()
        for part in (b"one", b"two"):
            peer.send(part)
            await soon(lambda part=part: owner.read.endswith(part))
        peer.close()
        await soon(lambda: owner.told == ["eof", "lost"])
        assert (owner.read, owner.error, watched.fd, watched.closing) == (b"onetwo", None, -1, True)


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_who_reads_nothing_is_told_once_that_the_peer_has_gone_and_reads_on_as_before(reset: bool) -> None:
    async with polling() as world:
        watched, owner, peer = world.pair()
        watched.pause_reading()
        peer.send(b"one")
        other, busy, writer = world.pair()  # while it is read from, the poller has turns
        for _ in range(3):
            before = len(busy.read)
            writer.send(b"x")
            await soon(lambda before=before: len(busy.read) > before)
        assert (owner.told, owner.read) == ([], b"")
        if reset:  # something that it has not read resets a connection of AF_UNIX, too
            watched.write(b"unread")
            await soon(lambda: "room" in owner.told)
            owner.told.clear()
        peer.close()
        await soon(lambda: bool(owner.told))
        turns = world.poller.turns
        for _ in range(3):
            before = len(busy.read)
            writer.send(b"x")
            await soon(lambda before=before: len(busy.read) > before)
        assert owner.told == ["gone"]
        assert world.poller.turns - turns <= 6  # its end wakes nobody again and again
        watched.resume_reading()
        await soon(lambda: "lost" in owner.told)
        assert owner.read == b"one"
        other.close()
        writer.close()


async def test_the_loop_goes_on_between_the_ends_of_many_that_are_lost_together() -> None:
    loop, turns = asyncio.get_running_loop(), 0
    seen: list[int] = []

    def turn() -> None:
        nonlocal turns
        turns += 1
        if len(seen) < 5:
            loop.call_soon(turn)

    class Slow(Owner):
        """Whose end takes longer than a turn may."""

        def connection_lost(self, error: Exception | None) -> None:
            super().connection_lost(error)
            seen.append(turns)
            until = time.monotonic() + 2 * TURN_SECONDS
            while time.monotonic() < until:
                pass
            if len(seen) == 2:
                raise RuntimeError("an owner's fault, which is not that of those behind it")

    faults: list[Any] = []
    loop.set_exception_handler(lambda loop, context: faults.append(context["exception"]))
    async with polling() as world:
        for _ in range(5):
            watched, _, peer = world.pair()
            watched.attach(owner := Slow(world.ledger), owner)
            watched.abort()
            peer.close()
        loop.call_soon(turn)
        await soon(lambda: len(seen) == 5)
        assert all(later > before for before, later in pairwise(seen)), "two ends in one turn"
        assert [type(fault) for fault in faults] == [RuntimeError]
        assert world.ledger.turn_cpu_max > 0


async def test_nothing_is_read_while_it_is_paused() -> None:
    async with polling() as world:
        watched, owner, peer = world.pair()
        other, others, others_peer = world.pair()
        watched.pause_reading()
        peer.send(b"later")
        others_peer.send(b"now")
        await soon(lambda: others.read == b"now")  # a turn in which both were ready
        assert owner.read == b""
        watched.resume_reading()
        await soon(lambda: owner.read == b"later")
        for each in (watched, other):
            each.close()
        peer.close()
        others_peer.close()


async def test_a_reset_is_told_with_its_error_also_while_it_is_paused() -> None:
    async with polling() as world:
        accepted: list[Socket] = []
        acceptor, listening = world.listen(accepted.append)
        for paused in (False, True):
            peer = socket.create_connection(listening.getsockname())
            await soon(lambda: bool(accepted))
            watched, owner = accepted.pop(), Owner(world.ledger)
            assert (watched.address, watched.port) == peer.getsockname()
            watched.attach(owner, owner)
            if paused:
                watched.pause_reading()
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
            if paused:
                watched.resume_reading()
            await soon(lambda owner=owner: owner.told == ["lost"])
            assert isinstance(owner.error, ConnectionResetError)
        acceptor.close()
        listening.close()


async def test_what_is_written_goes_out_whole_before_it_is_closed() -> None:
    async with polling() as world:
        watched, owner, peer = world.pair()
        octets = os.urandom(4 * MIB)  # more than the kernel takes at once
        watched.write(octets)
        assert watched.get_write_buffer_size() == len(octets)
        watched.close()
        assert owner.told == []
        peer.setblocking(False)
        read, loop = b"", asyncio.get_running_loop()
        while part := await loop.sock_recv(peer, MIB):
            read += part
        assert read == octets
        await soon(lambda: owner.told == ["lost"])
        assert owner.error is None
        peer.close()


async def test_room_is_told_once_and_only_if_it_was_asked_for() -> None:
    async with polling() as world:
        watched, owner, peer = world.pair()
        peer.send(b"x")
        await soon(lambda: owner.read == b"x")
        assert owner.told == []
        watched.wait_for_room()
        await soon(lambda: owner.told == ["room"])
        peer.send(b"y")
        await soon(lambda: owner.read == b"xy")
        assert owner.told == ["room"]
        watched.abort()
        peer.close()


@pytest.mark.parametrize("end", ["close", "abort"])
async def test_a_socket_that_is_closed_while_it_is_read_from_reads_no_more(end: str) -> None:
    async with polling() as world:
        watched, owner, peer = world.pair()
        owner.on_read = getattr(watched, end)
        peer.send(b"first")
        await soon(lambda: owner.told == ["lost"])
        assert (owner.read, watched.fd) == (b"first", -1)
        watched.abort()  # once is enough
        watched.close()
        await asyncio.sleep(0)
        assert owner.told == ["lost"]
        peer.close()


async def test_a_fault_while_reading_is_the_owner_s_and_others_are_read_from() -> None:
    async with polling() as world:
        faulty, owner, peer = world.pair()
        other, others, others_peer = world.pair()

        def fail() -> None:
            raise RuntimeError("as the test wants it")

        owner.on_read = fail
        peer.send(b"x")
        others_peer.send(b"y")
        await soon(lambda: others.read == b"y" and bool(owner.told))
        assert owner.told == ["fault"]
        for each in (faulty, other):
            each.abort()
        peer.close()
        others_peer.close()


async def test_a_listening_socket_accepts_nothing_while_it_is_closed_and_goes_on_when_opened() -> None:
    async with polling() as world:
        accepted: list[Socket] = []
        watched, listening = world.listen(accepted.append)
        with socket.create_connection(listening.getsockname()):
            await soon(lambda: len(accepted) == 1)
        watched.close()
        assert (watched.fd, world.poller.count) == (-1, 0)
        with socket.create_connection(listening.getsockname()):
            again = ListeningSocket(world.poller, listening, accepted.append, lambda error: None)
            again.open()
            await soon(lambda: len(accepted) == 2)
        again.close()
        accepted.clear()  # a Socket that nobody has attached to closes its descriptor when it goes
        listening.close()


async def test_what_is_accepted_waits_for_no_full_segment_and_notices_a_peer_that_has_gone() -> None:
    async with polling() as world:
        accepted: list[Socket] = []
        watched, listening = world.listen(accepted.append)
        with socket.create_connection(listening.getsockname()):
            await soon(lambda: len(accepted) == 1)
            with socket.socket(fileno=os.dup(accepted[0].fd)) as ours:
                assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        watched.close()
        accepted.clear()
        listening.close()


async def test_a_hundred_connections_leave_no_descriptor_behind() -> None:
    async with polling() as world:
        ends = []
        for number in range(100):
            watched, owner, peer = world.pair()
            peer.send(b"x")
            ends.append((watched, owner, peer, number))
        assert world.poller.count == 100
        await soon(lambda: all(owner.read == b"x" for _, owner, _, _ in ends))
        for watched, _, peer, number in ends:
            if number % 2:
                peer.close()
            else:
                watched.abort()
        await soon(lambda: all("lost" in owner.told for _, owner, _, _ in ends))
        for _, _, peer, _ in ends:
            peer.close()


async def test_a_socket_that_is_closed_by_one_that_was_ready_with_it_is_not_read_from() -> None:
    async with polling() as world:
        first, owner, peer = world.pair()
        second, other, others_peer = world.pair()
        owner.on_read, other.on_read = second.abort, first.abort
        peer.send(b"x")
        others_peer.send(b"x")
        await soon(lambda: owner.told + other.told == ["lost"])
        assert owner.read + other.read == b"x"
        for each in (first, second):
            each.abort()
        peer.close()
        others_peer.close()
