"""The brokers themselves: each that is installed starts, can be connected to, and is gone afterwards."""

import socket
from pathlib import Path

import pytest

from fanlight_bench import procfs
from fanlight_bench.launch import LaunchError
from fanlight_bench.load import carry
from fanlight_bench.load.target import parse
from fanlight_bench.peers.contenders import CONTENDERS, peers
from fanlight_bench.peers.peer import Peer, free_ports, served
from tests.require import command

pytestmark = pytest.mark.release

PEERS = peers()
# The rest is for `make bench-peers` to install, not for the tests to need.
THERE = [peer for peer in PEERS if peer.program() is not None]


@pytest.mark.parametrize("peer", THERE, ids=lambda peer: peer.name)
def test_a_broker_starts_answers_and_leaves_nothing_running(peer: Peer, tmp_path: Path) -> None:
    with peer.start(tmp_path, None) as up:
        running = [up.pid, *procfs.descendants(up.pid)]
        for port in set(up.ports.values()):
            socket.create_connection(("127.0.0.1", port), 5.0).close()
    for pid in running:
        assert not _runs(pid), f"{pid} of {peer.name} still runs"


CARRIED = [
    (contender.name, contender.peer, scheme)
    for contender in CONTENDERS.values() if contender.peer.program() is not None
    for scheme in contender.schemes if "+" in scheme
]  # fmt: skip


@pytest.mark.parametrize(("name", "peer", "scheme"), CARRIED, ids=lambda one: one if isinstance(one, str) else "")
def test_a_broker_can_be_reached_by_tls_and_websocket(name: str, peer: Peer, scheme: str, tmp_path: Path) -> None:
    command("openssl", package="openssl")
    with peer.listening(scheme).start(tmp_path, None) as up:
        target = parse(up.url(scheme))
        connection, _ = carry.opened(target, (target.host, target.port))
        connection.close()


@pytest.mark.parametrize("peer", [peer for peer in THERE if peer.name != "null"], ids=lambda peer: peer.name)
def test_an_installed_broker_says_its_version(peer: Peer) -> None:
    assert peer.version()[:1].isdigit()


def test_the_tests_have_brokers_to_start() -> None:
    assert {"fanlight", "null"} <= {peer.name for peer in THERE}


def test_each_broker_has_a_configuration_to_print() -> None:
    assert all(peer.configuration() for peer in PEERS)


def test_what_a_server_started_goes_with_it() -> None:
    shell = command("sh", package="dash")
    with served([shell, "-c", "sleep 60 & echo ready; wait"], "ready", cpu=None) as server:
        (child,) = procfs.descendants(server.pid)
        assert Path(f"/proc/{child}").exists()
    assert not _runs(child)


def test_a_server_that_does_not_come_up_is_an_error_with_its_words() -> None:
    shell = command("sh", package="dash")
    with pytest.raises(LaunchError, match="no such port"), served([shell, "-c", "echo no such port"], "up", cpu=None):
        pytest.fail("it did not start")
    with pytest.raises(LaunchError, match="No such file"), served(["/nowhere/broker"], "up", cpu=None):
        pytest.fail("it is not there")


def test_free_ports_are_different_and_can_be_listened_on() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()


def _runs(pid: int) -> bool:
    """Not ended; one that nobody has waited for counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
