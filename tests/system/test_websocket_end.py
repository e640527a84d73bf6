"""How a WebSocket ends that the broker closes: at once when the peer has answered its Close (RFC 6455, 7.1.1)."""

from fanlight_broker.auth import Credentials
from tests.system.test_websocket import RawPeer, listener, masked
from tests.system.wire import hello

CLOSE = b"\x03\xe8"


async def test_who_is_refused_while_its_password_was_checked_is_heard_when_it_closes() -> None:
    # The connection reads nothing while a password is checked. It must not go on so when the answer is no.
    async with listener(credentials=Credentials(password="s3cret"), linger_seconds_max=300) as (port, _, serving):
        async with await RawPeer.upgraded(port) as peer:
            await peer.send(masked(2, hello(password="wrong")) + masked(8, CLOSE))
            assert (await peer.all()).endswith(b"\x88\x02" + CLOSE)
        assert serving.counters()["connections_closed"] == 1
