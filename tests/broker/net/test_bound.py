"""Listening sockets: on which addresses they are bound."""

import errno
import socket
from typing import Any

import pytest

from broker.net import bound
from broker.net.bound import bind

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

    monkeypatch.setattr(bound.socket, "create_server", create_server)


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

    monkeypatch.setattr(bound.socket, "create_server", create_server)
    with pytest.raises(OSError, match="as on most machines"):
        await bind("fe80::1%eth0", 0, 1)
    assert asked == [V6[4]]
