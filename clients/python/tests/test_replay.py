"""Replays: what was archived, then what is live (section 3.7)."""

from datetime import UTC, datetime

import pytest

import fanlight
from fanlight.cli.arguments import parser

from .frame_bytes import fixint, frame, num, octets, options, text, uint32, uint64
from .peer import Connection, Peer, connect, conversing, error, listening, message
from .test_client import subscribe
from .test_reconnect import QUICK

NIL = b"\xc0"


def replay(request: int, number: int, filter: str, **wanted: bytes) -> bytes:
    return frame(fixint(48), num(request), num(number), text(filter), *([options(**wanted)] if wanted else []))


def replayed(number: int, offset: int, payload: bytes) -> bytes:
    fields = (fixint(4), uint32(number), text("t"), octets(payload), NIL, NIL, NIL, uint64(offset), uint64(1_500_000))
    return frame(*fields)


def begun(request: int, epoch: int = 3) -> bytes:
    return frame(fixint(7), num(request), options(epoch=num(epoch)))


def end(number: int, offset: int) -> bytes:
    return frame(fixint(49), num(number), num(offset), num(3))


async def greeted(peer: Peer) -> Connection:
    connection = await peer.connection()
    await connection.greet(features=("replay",))
    return connection


async def test_messages_tell_where_they_stand_until_the_replay_is_live() -> None:
    async def script(peer: Peer) -> None:
        connection = await greeted(peer)
        await connection.expect(replay(1, 1, "t", since=num(2_000_000)))
        await connection.say(begun(1), replayed(1, 7, b"a"), end(1, 9), message(1, "t", b"b"))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        messages = await client.replay("t", since=datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC))
        first, second = await messages.next(5), await messages.next(5)
        assert (first.payload, first.offset) == (b"a", 7)
        assert first.timestamp == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
        assert (second.payload, second.offset, second.timestamp) == (b"b", None, None)
        assert (messages.live, messages.next_offset, messages.epoch) == (True, 9, 3)


async def test_after_a_reconnect_a_replay_goes_on_where_it_was_and_a_live_one_is_subscribed() -> None:
    async def script(peer: Peer) -> None:
        first = await greeted(peer)
        await first.expect(replay(1, 1, "t"))
        await first.say(begun(1), replayed(1, 0, b"0"), replayed(1, 1, b"1"))
        first.hang_up()
        second = await greeted(peer)
        await second.expect(replay(2, 1, "t", offset=num(2), epoch=num(3)))
        await second.say(begun(2), replayed(1, 2, b"2"), end(1, 3))
        second.hang_up()
        third = await greeted(peer)
        await third.expect(subscribe(3, 1, "t"))
        await third.say(frame(fixint(7), num(3)), message(1, "t", b"3"))

    async with listening() as peer, conversing(peer, script), connect(peer.url, reconnect=QUICK) as client:
        messages = await client.replay("t")
        assert [(await messages.next(5)).payload for _ in range(4)] == [b"0", b"1", b"2", b"3"]


async def test_a_part_of_the_archive_is_asked_for_by_its_end_and_taken_many_at_a_time() -> None:
    kept = {"archive": text("0f3a"), "start": num(2), "end": num(9), "offset": num(5), "bytes": num(700)}
    ended = frame(fixint(9), num(1), text("end"), num(2), num(0))

    async def script(peer: Peer) -> None:
        connection = await greeted(peer)
        await connection.expect(replay(1, 1, "t", offset=num(5), end=num(7)))
        answer = frame(fixint(7), num(1), options(epoch=num(3), **kept))
        await connection.say(answer, replayed(1, 5, b"5"), replayed(1, 6, b"6"), end(1, 7), ended)

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        messages = await client.replay("t", offset=5, end=7)
        assert messages.kept == {"archive": "0f3a", "start": 2, "end": 9, "offset": 5, "bytes": 700}
        found = []
        while some := await messages.archived(10):
            found += [(one.offset, one.payload, one.timestamp) for one in some]
        assert found == [(5, b"5", 1_500_000), (6, b"6", 1_500_000)]
        assert (messages.live, messages.next_offset) == (True, 7)


async def test_a_connection_that_is_lost_before_the_end_is_told_does_not_make_a_replay_of_the_past_live() -> None:
    async def script(peer: Peer) -> None:
        first = await greeted(peer)
        await first.expect(replay(1, 1, "t", end=num(1)))
        await first.say(begun(1), replayed(1, 0, b"0"), end(1, 1))
        first.hang_up()
        await greeted(peer)  # and nothing is asked for

    async with listening() as peer, conversing(peer, script), connect(peer.url, reconnect=QUICK) as client:
        messages = await client.replay("t", end=1)
        assert [message.payload async for message in messages] == [b"0"]
        assert messages.live


async def test_a_replay_that_breaks_off_raises_behind_its_last_message() -> None:
    async def script(peer: Peer) -> None:
        connection = await greeted(peer)
        await connection.expect(replay(1, 1, "t", offset=num(5)))
        gone = frame(fixint(9), num(1), text("messages_gone"), num(1), num(0))
        await connection.say(begun(1), replayed(1, 5, b"5"), gone)
        await connection.expect(replay(2, 2, "t", offset=num(1), past_only=b"\xc3"))
        await connection.say(error(2, "messages_gone"))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        messages = await client.replay("t", offset=5)
        assert (await messages.next(5)).offset == 5
        with pytest.raises(fanlight.MessagesGone):
            await messages.next(5)
        with pytest.raises(fanlight.MessagesGone):
            await client.replay("t", offset=1, past_only=True)


async def test_a_broker_without_the_feature_is_not_asked() -> None:
    async def script(peer: Peer) -> None:
        await peer.greeted()

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        with pytest.raises(fanlight.Unsupported, match="no archive"):
            await client.replay("t")
        for wrong in (
            {"offset": 1, "since": 1.0}, {"epoch": 1}, {"offset": -1}, {"end": -1}, {"since": datetime(2020, 1, 1)},
        ):  # fmt: skip
            with pytest.raises(ValueError, match=r"offset|time zone"):
                client.replay("t", **wrong)  # type: ignore[arg-type]


def test_since_is_how_long_ago_or_a_time_or_all() -> None:
    def since(word: str) -> object:
        return parser().parse_args(["sub", "t", "--since", word]).since

    assert since("all") == 0.0
    found = since("2026-01-31T12:00+00:00")
    assert found == datetime(2026, 1, 31, 12, tzinfo=UTC)
    ago = since("2h")
    assert isinstance(ago, float)
    assert 7_190 < datetime.now(UTC).timestamp() - ago < 7_260
    with pytest.raises(SystemExit):
        since("yesterday")
