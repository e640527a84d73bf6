"""The replays of one connection, by the numbers that the client chose: REPLAY and its answers (section 3.7).

A number belongs to its replay until that has gone live, and to an ordinary subscription from then on.
"""

from fanlight_broker.core import errors
from fanlight_broker.core.content import Content
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.replay import Replay, ReplayPart, ReplayRequest
from fanlight_broker.core.selectors import condition_of
from fanlight_broker.core.subscriber import Client
from fanlight_broker.core.topics import syntax_of
from fanlight_broker.protocols.native import convert, frames
from fanlight_broker.protocols.native.error_codes import CODES
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.outbox import Outbox


class ConnectionReplays:
    """`core.replay.ReplayObserver`."""

    def __init__(self, broker: Namespace, outbox: Outbox) -> None:
        self.failed = 0  # of those requested
        self._broker = broker
        self._outbox = outbox
        self._running: dict[int, tuple[Replay, int | None]] = {}  # by number; with the request to answer

    def __contains__(self, number: int) -> bool:
        return number in self._running

    def check_number(self, number: int) -> None:
        """Raises SubscriptionInUse if it is a replay's."""
        if number in self._running:
            raise errors.SubscriptionInUse(number)

    def begin(self, client: Client | None, frame: frames.ReplayFrame) -> None:
        """REPLAY. It is answered with its first part. Raises the errors of SUBSCRIBE."""
        broker, number = self._broker, frame.subscription
        assert client is not None
        assert broker.replay_source is not None
        self.check_number(number)
        if client.subscriber.subscriptions.numbered(number) is not None:
            raise errors.SubscriptionInUse(number)
        wanted = ReplayRequest(
            frame.filter, syntax_of(frame.syntax), offset=frame.offset, epoch=frame.epoch, since=frame.since,
            end=frame.end, live=not frame.past_only and frame.end is None,
            condition=condition_of(frame.where) if frame.where is not None else None,
        )

        def encode(
            offset: int, timestamp: int, topic: bytes, syntax: int, payload: bytes, content: Content | None
        ) -> bytes:
            if content is None:  # the common case, in a sixth of the time
                return frames.replayed_plainly(number, topic, syntax, payload, offset, timestamp)
            message = convert.write(FORMAT, content)
            assert message is not None  # a native message can represent everything
            return frames.replayed(number, message, offset, timestamp)

        replay = Replay(
            broker.subscribing, broker.flow, broker.replay_source, client, self, number, wanted, encode
        )
        self._running[number] = (replay, frame.request)
        replay.start()

    def end(self, request: int | None, number: int, after: int = 0) -> None:
        """UNSUBSCRIBE of a replay that is not live yet."""
        if after:
            raise errors.Unsupported("UNSUBSCRIBE with after: the replay has not gone live yet", option="after")
        replay, _ = self._running.pop(number)
        replay.cancel()
        if request is not None:
            result = {"delivered": replay.delivered, "dropped": 0}
            self._outbox.write(frames.ok(request, result))

    def drained(self) -> None:
        for replay, _ in list(self._running.values()):
            replay.drained()

    def cancel_all(self) -> None:
        for replay, _ in self._running.values():
            replay.cancel()
        self._running.clear()

    def deny(self, number: int) -> None:
        """Permissions do not allow it any more."""
        replay, _ = self._running[number]
        replay.deny()

    # -- core.replay.ReplayObserver ---------------------------------------------------------------------------------

    def replay_begun(self, replay: Replay, part: ReplayPart) -> None:
        _, request = self._running[replay.number]
        if request is not None:
            kept = part.kept._asdict() if part.kept is not None else {}
            self._outbox.write(frames.ok(request, {"epoch": part.epoch, **kept}))

    def replay_ended(self, replay: Replay, part: ReplayPart) -> None:
        outbox = self._outbox
        del self._running[replay.number]
        outbox.write(frames.replay_end(replay.number, part.offset, part.epoch))
        if not replay.wanted.live:
            outbox.write(frames.ended(replay.number, "end", replay.delivered, 0))

    def replay_failed(self, replay: Replay, error: errors.FanlightError) -> None:
        outbox, code = self._outbox, CODES[type(error)].name
        _, request = self._running.pop(replay.number)
        self.failed += 1
        if not replay.begun and request is not None:
            outbox.write(frames.error(request, code, error.text, error.details))
        else:
            outbox.write(frames.ended(replay.number, code, replay.delivered, 0))
