"""Acceptors: on which addresses they listen, and whether others may, too."""

import asyncio
import errno
import socket
from typing import Any

import pytest

from fanlight_broker.net import acceptor
from fanlight_broker.net.acceptor import TcpAcceptor, bind
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.poller import Poller
from fanlight_broker.wire.ledger import Ledger
from tests.system.test_transports import give_up

V4: Any = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))
V6: Any = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", 0, 0, 7))


def resolve_to(monkeypatch: pytest.MonkeyPatch, *found: Any) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments, **options: list(found))


def without_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    create = socket.create_server

    def create_server(address: Any, *, family: int, **options: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return create(address, family=family, **options)

    monkeypatch.setattr(acceptor.socket, "create_server", create_server)


async def test_a_family_that_the_machine_has_not_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, V6, V4, V4)
    without_ipv6(monkeypatch)
    (only,) = await bind("", 0, 1)
    assert (only.family, only.getblocking()) == (socket.AF_INET, False)
    only.close()


async def test_with_no_other_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, V6)
    without_ipv6(monkeypatch)
    with pytest.raises(OSError, match="not supported"):
        await bind("", 0, 1)


async def test_an_address_keeps_its_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    """A link-local address is none without it (RFC 4007, 6)."""
    resolve_to(monkeypatch, V6)
    asked: list[Any] = []

    def create_server(address: Any, **options: Any) -> socket.socket:
        asked.append(address)
        raise OSError(errno.EADDRNOTAVAIL, "as on most machines")

    monkeypatch.setattr(acceptor.socket, "create_server", create_server)
    with pytest.raises(OSError, match="as on most machines"):
        await bind("fe80::1%eth0", 0, 1)
    assert asked == [V6[4]]


class Shared(TcpAcceptor):
    reuse_port = True


async def test_a_port_is_shared_only_by_acceptors_that_ask_for_it() -> None:
    poller = Poller(asyncio.get_running_loop(), Flusher(Ledger(1 << 20, lambda: None), give_up))
    acceptors: list[TcpAcceptor] = []

    async def listen(kind: type[TcpAcceptor], port: int) -> int:
        acceptors.append(kind(poller, lambda accepted: accepted.abort()))
        _, port = await acceptors[-1].start("127.0.0.1", port, 1)
        return port

    try:
        shared = await listen(Shared, 0)
        assert await listen(Shared, shared) == shared
        with pytest.raises(OSError, match="in use"):
            await listen(TcpAcceptor, shared)
        alone = await listen(TcpAcceptor, 0)
        with pytest.raises(OSError, match="in use"):
            await listen(Shared, alone)
    finally:
        for each in acceptors:
            each.close()
        poller.close()


async def test_it_accepts_again_after_it_had_no_descriptors() -> None:
    poller = Poller(asyncio.get_running_loop(), Flusher(Ledger(1 << 20, lambda: None), give_up))
    came = asyncio.Event()

    def accepted(connection: Any) -> None:
        came.set()

    acceptor = TcpAcceptor(poller, accepted)
    host, port = await acceptor.start("127.0.0.1", 0, 1)
    try:
        acceptor.cannot_accept(OSError(errno.EMFILE, "too many open files"))
        assert (poller.count, acceptor.is_serving()) == (0, True)
        with socket.create_connection((host, port)):
            async with asyncio.timeout(60):
                await came.wait()
        assert poller.count == 1
    finally:
        acceptor.close()
        poller.close()
    assert not acceptor.is_serving()
