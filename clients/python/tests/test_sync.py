"""The blocking client's own matters: threads, interrupts, ends. What it shares is tested with the asyncio client."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

import fanlight
import fanlight.sync

from .peer import Peer, listening, message, ok, pong


class Background:
    """A scripted peer on a loop in a thread of its own, since the client blocks this one."""

    def __init__(self) -> None:
        self.url = ""
        self.failures: list[BaseException] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(5)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with listening() as peer:
            self.url = peer.url
            self._ready.set()
            script = asyncio.create_task(self._script(peer))
            await self._stop.wait()
            script.cancel()

    async def _script(self, peer: Peer) -> None:
        """Welcome; confirm subscriptions and pings; echo what is published to subscription 1."""
        while True:
            connection = await peer.greeted()
            try:
                while True:
                    body = await connection.frame()
                    if body[1] == 6:
                        await connection.say(ok(body[2]))
                    elif body[1] == 11:
                        await connection.say(pong(body[2]))
                    elif body[1] == 3:
                        await connection.say(message(1, "t", body[-1:]))
                    elif body[1] == 8:
                        await connection.say(ok(body[2]))
            except asyncio.IncompleteReadError:
                continue

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(5)


@pytest.fixture
def peer() -> Iterator[Background]:
    background = Background()
    yield background
    background.stop()


def public(thing: object) -> set[str]:
    """The names of a module or class that are for everybody."""
    return {name for name in getattr(thing, "__all__", dir(thing)) if not name.startswith("_")}


def test_it_has_the_names_of_the_asyncio_client() -> None:
    # Here `connect` returns when the connection is open: there is nothing to await in between.
    assert public(fanlight.sync) == public(fanlight) - {"Connecting", "sync"}
    assert all(hasattr(fanlight.sync, name) for name in fanlight.sync.__all__)
    # What the parts of the asyncio client call in each other is no program's business.
    internal = {
        "consumer_info_received", "content", "delivery_received", "ended_received", "link_failed", "reconnected",
        "replay_ended_received", "resume",
    }  # fmt: skip
    assert public(fanlight.Client) - internal == public(fanlight.sync.Client) - {"options"}
    internal = {
        "answered", "begin", "leave", "deliver", "finish", "finish_ended", "request_frame", "take_queued",
        "wire_filter", "wire_options", "forget_queued", "message_type", "connection",
        "informed",
    }  # fmt: skip
    assert public(fanlight.Subscription) - internal <= public(fanlight.sync.Subscription)
    assert public(fanlight.Replay) - internal - {"gone_live"} <= public(fanlight.sync.Replay)
    assert public(fanlight.QueueSubscription) - internal <= public(fanlight.sync.QueueSubscription)
    assert public(fanlight.Message) == public(fanlight.sync.Message)
    assert public(fanlight.QueueMessage) == public(fanlight.sync.QueueMessage)


def test_a_client_says_what_it_holds(peer: Background) -> None:
    with fanlight.sync.connect(peer.url) as client:
        assert str(client.address) == peer.url
        first = client.subscribe("t")
        with client.subscribe("u") as second:
            assert set(client.subscriptions) == {first, second}
        assert client.subscriptions == (first,)
        client.publish("t", b"1")
        client.flush()
        assert client.unsent == (0, 0)


def test_closing_leaves_no_thread_behind(peer: Background) -> None:
    before = threading.active_count()
    client = fanlight.sync.connect(peer.url)
    assert threading.active_count() == before + 1
    client.close()
    client.close()
    assert threading.active_count() == before
    for call in (lambda: client.publish("t"), client.flush, lambda: client.subscribe("t")):
        with pytest.raises(fanlight.ConnectionClosed):
            call()


def test_a_connection_that_fails_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    with pytest.raises(fanlight.ConnectError):
        fanlight.sync.connect("fanlight://127.0.0.1:1")
    assert threading.active_count() == before


def test_messages_keep_their_order_and_later_calls_stay_behind_them(peer: Background) -> None:
    with fanlight.sync.connect(peer.url) as client, client.subscribe("t") as got:
        for number in range(300):
            client.publish("t", bytes([number % 256]))
        client.flush()
        assert client.stats.published == 300
        assert got.pending[0] == 300
        assert [got.next(5).payload[0] for _ in range(300)] == [number % 256 for number in range(300)]
        with pytest.raises(fanlight.MessageTimeout):
            got.next(0.01)


def test_what_cannot_be_sent_is_refused_on_the_callers_thread(peer: Background) -> None:
    with fanlight.sync.connect(peer.url) as client:
        with pytest.raises(TypeError):
            client.publish("t", "text")
        with pytest.raises(TypeError, match=r"pairs \(topic, payload\); item 1 is b'x'"):
            client.publish_many([("t", b""), b"x"])  # type: ignore[list-item]
        with pytest.raises(fanlight.FrameTooLarge):
            client.publish("t", bytes(2**21))


def test_an_iteration_in_another_thread_ends_when_the_client_is_closed(peer: Background) -> None:
    client = fanlight.sync.connect(peer.url)
    got = client.subscribe("t")
    ended = threading.Event()

    def take() -> None:
        for _ in got:
            pass
        ended.set()

    thread = threading.Thread(target=take)
    thread.start()
    client.close()
    assert ended.wait(5)
    thread.join()


def test_a_blocking_call_from_a_hook_is_refused_instead_of_waiting_for_itself(peer: Background) -> None:
    said: list[BaseException] = []
    called = threading.Event()

    def on_disconnect(_: fanlight.FanlightError) -> None:
        try:
            client.flush()
        except RuntimeError as error:
            said.append(error)
        called.set()

    client = fanlight.sync.connect(peer.url, reconnect=False, on_disconnect=on_disconnect)
    peer.stop()
    assert called.wait(5)
    client.close()
    assert "wait for itself" in str(said[0])
