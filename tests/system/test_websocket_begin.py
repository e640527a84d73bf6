"""How a WebSocket begins: what comes together with the request, or right behind it."""

import asyncio

import pytest

from tests.system.test_websocket import REQUEST, SUBPROTOCOL, RawPeer, listener, masked
from tests.system.wire import Type, frame, hello, ping


@pytest.mark.parametrize("cut", [None, 1, 40, 1_000])
async def test_frames_right_behind_the_request_are_read_like_all_others(cut: int | None) -> None:
    """Wherever the bytes are cut. wsproto drops what comes together with the end of the request."""
    request = REQUEST + SUBPROTOCOL + b"\r\n"
    octets = request + masked(2, hello() + ping(1)[:3], fin=False) + masked(0, ping(1)[3:])
    async with listener() as (port, _, _), await RawPeer.open(port) as peer:
        if cut is None:
            pieces = [octets[: len(request)], octets[len(request) :]]
        else:
            pieces = [octets[at : at + cut] for at in range(0, len(octets), cut)]
        for piece in pieces:
            await peer.send(piece)
            await asyncio.sleep(0)
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += await peer.octets(1)
        got = b""
        while not got.endswith(frame(Type.PONG, 1)):
            got += (await peer.websocket_frame())[1]
