"""A broker's life as its operator sees it: signals, reloads, ports in use, crashes."""

import asyncio
import json
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from fanlight_bench.launch import Broker, LaunchError, fanlightd
from tests.conftest import StartBroker, TestBroker
from tests.system.views import KIB, ask, eventually, logged, stats
from tests.system.wire import SMALL_BUFFER, Peer, Type, number_of, numbered, ping, publish, subscribe

FLOOD = 6_000
SIZE = 1_000
SMALL = {"outbox_bytes_max": 1024 * KIB, "frame_bytes_max": 64 * KIB}


async def behind(broker: TestBroker, count: int = FLOOD) -> Peer:
    """A subscriber for which there is more than the kernel takes, dropped as it came where it was too much."""
    reader = await Peer.connect(broker.port, receive_buffer=SMALL_BUFFER, slow_policy="drop_newest")
    await reader.subscribe(1, "flood")
    async with await Peer.connect(broker.port) as publisher:
        await publisher.send(*(publish("flood", payload) for payload in numbered(range(count), SIZE)))
        await publisher.settle()
    return reader


async def ended(broker: Broker, seconds: float = 20) -> int:
    return await asyncio.to_thread(broker.wait, seconds)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_and_ends_with_code_0(start_broker: StartBroker, number: signal.Signals) -> None:
    broker = start_broker()
    async with await Peer.connect(broker.port) as client, await Peer.open(broker.port) as stranger:
        broker.process.send_signal(number)
        assert (await client.rest())[-1][:2] == [Type.GOODBYE, "shutting_down"]
        assert (await stranger.rest())[-1][:2] == [Type.GOODBYE, "shutting_down"]
        assert await ended(broker) == 0
    assert logged(broker, "draining")
    assert logged(broker, "stopped")


async def test_a_slow_but_living_reader_gets_all_that_was_for_it_before_the_end(start_broker: StartBroker) -> None:
    broker = start_broker(**SMALL, grace_seconds=60, linger_seconds_max=0.3)
    async with await behind(broker) as reader:
        wanted = FLOOD - (await stats(broker))["dropped_newest"]
        broker.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(broker.wait_for_line, '"draining"')
        assert ask(f"{broker.http_url}/readyz")[0] == 503
        assert ask(f"{broker.http_url}/healthz")[0] == 200
        assert json.loads(ask(f"{broker.http_url}/stats")[1])["outbox_bytes"] > 0
        with pytest.raises(ConnectionRefusedError):
            await Peer.open(broker.port)

        got: list[int] = []
        while len(got) < wanted:
            got += [number_of(payload) for payload in await reader.payloads(min(500, wanted - len(got)))]
            # Longer altogether than linger_seconds_max, which is for other closes.
            await asyncio.sleep(0.05)
        assert got == sorted(set(got))
        assert [kind for kind, *_ in await reader.rest()] == [Type.GOODBYE]
        assert await ended(broker) == 0
    assert not logged(broker, "grace_over")


async def test_who_never_stops_sending_still_gets_everything_and_the_goodbye(start_broker: StartBroker) -> None:
    # What is sent to a socket that has been closed is answered with a reset, which throws away what is still under way.
    broker = start_broker(**SMALL, grace_seconds=60)
    async with await behind(broker) as reader:
        wanted = FLOOD - (await stats(broker))["dropped_newest"]

        async def chatter() -> None:
            # More than the receive buffers hold, so that there is something unread whenever the broker closes.
            await reader.send(*[publish("nobody", bytes(10_000))] * 400)

        chatting = asyncio.create_task(chatter())
        broker.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(broker.wait_for_line, '"draining"')
        frames = await reader.rest()
        chatting.cancel()
        await asyncio.wait({chatting})
        assert [kind for kind, *_ in frames] == [Type.MESSAGE] * wanted + [Type.GOODBYE]
        assert await ended(broker) == 0


async def test_a_second_sigterm_ends_it_at_once(start_broker: StartBroker) -> None:
    broker = start_broker(**SMALL, grace_seconds=3600)
    async with await behind(broker):
        broker.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(broker.wait_for_line, '"draining"')
        broker.process.send_signal(signal.SIGTERM)
        assert await ended(broker) == 0
    assert logged(broker, "stopped_at_once")


async def test_the_end_of_the_grace_period_ends_it_too(start_broker: StartBroker) -> None:
    broker = start_broker(**SMALL, grace_seconds=0.5)
    async with await behind(broker):
        broker.process.send_signal(signal.SIGTERM)
        assert await ended(broker) == 0
    (late,) = logged(broker, "grace_over")
    assert late["connections"] == 1


async def test_paused_publishers_do_not_hold_up_a_drain(start_broker: StartBroker) -> None:
    broker = start_broker(**SMALL, pause_allowed=True, pause_seconds_max=3600, grace_seconds=30)
    slow = await Peer.connect(broker.port, receive_buffer=SMALL_BUFFER, slow_policy="pause")
    async with slow, await Peer.connect(broker.port) as publisher:
        await slow.subscribe(1, "flood")
        frames = [publish("flood", payload) for payload in numbered(range(20_000), SIZE)]
        sending = asyncio.create_task(publisher.send(*frames))
        await eventually(broker, lambda now: now["outboxes_blocking"] == 1)
        broker.process.send_signal(signal.SIGTERM)
        assert (await publisher.frame())[:2] == [Type.GOODBYE, "shutting_down"]
        sending.cancel()
        await asyncio.wait({sending})
        publisher.close()
        *messages, goodbye = await slow.rest()
        assert goodbye[:2] == [Type.GOODBYE, "shutting_down"]
        got = [number_of(each[3]) for each in messages]
        assert got == list(range(len(got)))
        assert await ended(broker) == 0


async def test_sighup_takes_new_limits_into_force_for_those_who_come(start_broker: StartBroker, tmp_path: Path) -> None:
    config = tmp_path / "fanlight.toml"
    config.write_text("subscriptions_per_client_max = 2\nconnections_max = 100\n")
    broker = start_broker(config=config)
    async with await Peer.connect(broker.port) as client:
        await client.subscribe(1, "a")
        await client.subscribe(2, "b")
        config.write_text("subscriptions_per_client_max = 3\nconnections_max = 1\n")
        broker.process.send_signal(signal.SIGHUP)
        await asyncio.to_thread(broker.wait_for_line, '"reloaded"')
        await client.subscribe(3, "c")  # nobody was cut off, and the new limit is in force
        async with await Peer.open(broker.port) as another:
            assert (await another.rest())[-1][:2] == [Type.GOODBYE, "too_many_connections"]


@pytest.mark.parametrize("text", ["subscriptions_per_client_max = 'many'", "no = toml = at all", "unknown_key = 1"])
async def test_wrong_settings_change_nothing_and_are_logged(
    start_broker: StartBroker, tmp_path: Path, text: str
) -> None:
    config = tmp_path / "fanlight.toml"
    config.write_text("subscriptions_per_client_max = 1\n")
    broker = start_broker(config=config)
    broker.may_complain = True
    async with await Peer.connect(broker.port) as client:
        config.write_text(text)
        broker.process.send_signal(signal.SIGHUP)
        await asyncio.to_thread(broker.wait_for_line, '"reload_failed"')
        await client.subscribe(1, "a")
        await client.send(subscribe(99, 2, "b"))
        assert (await client.expect(Type.ERROR))[2] == "limit_exceeded"
    (failed,) = logged(broker, "reload_failed")
    assert str(config) in failed["reason"]


def test_a_port_in_use_is_said_clearly_with_exit_code_69() -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = str(occupied.getsockname()[1])
        for flags in (["--native-port", port, "--http-port", "0"], ["--native-port", "0", "--http-port", port]):
            ran = subprocess.run(
                [fanlightd(), "serve", "--no-mqtt", "--no-amqp", "--no-native-websocket", *flags], capture_output=True,
                text=True, timeout=30, check=False,
            )
            assert ran.returncode == 69
            assert port in ran.stderr
            assert "Is another broker running? Choose another port" in ran.stderr
            assert "Traceback" not in ran.stdout + ran.stderr


async def test_after_a_kill_it_starts_again_on_the_same_port(start_broker: StartBroker) -> None:
    first = start_broker()
    async with await Peer.connect(first.port) as client, await Peer.connect(first.port) as other:
        await client.subscribe(1, "a")
        first.process.kill()
        await client.ended()
        await other.ended()
        await asyncio.to_thread(first.process.wait)
        second = start_broker(native_port=first.port, http_port=first.addresses["http"][1])
        async with await Peer.connect(second.port) as again:
            await again.subscribe(1, "a", no_echo=True)
            assert await again.publish("a") == 0


def test_a_broker_that_cannot_start_says_so_in_one_breath(start_broker: StartBroker) -> None:
    with pytest.raises(LaunchError, match="outbox_bytes_max"):
        start_broker(outbox_bytes_max=65536, frame_bytes_max=65536)


async def test_more_connections_than_the_soft_limit_of_files_are_taken(start_broker: StartBroker) -> None:
    limited = ("sh", "-c", 'ulimit -S -n 128; exec "$@"', "sh", fanlightd())  # of the broker alone
    broker = start_broker(command=limited, connections_max=400)
    peers = [await Peer.connect(broker.port) for _ in range(400)]
    try:
        await peers[-1].send(ping(1))
        await peers[-1].expect(Type.PONG, 1)
    finally:
        for peer in peers:
            peer.close()
