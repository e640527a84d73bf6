"""A replay: archived messages, then live ones, without a gap and without duplicates.

    READING   parts of the archive, each after the one before has left the outbox
       | nothing is left to read
    JOINING   the subscription is in force, without credit: live messages wait at it. The source reports the offset
       |      at which they begin
    CLOSING   the archive up to that offset
       |
    LIVE      the messages that waited, then new ones: an ordinary subscription

If more messages arrive than may wait, the subscription is removed again and reading continues: the dropped messages are
in the archive too. `ReplaySource` does the reading; the protocol decides how a message is encoded.
"""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from fanlight_broker.core.content import Content
from fanlight_broker.core.errors import FanlightError, NotPermitted
from fanlight_broker.core.flow import Flow
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.pools import Replaying
from fanlight_broker.core.subscriber import Client, Subscriber
from fanlight_broker.core.subscribing import Subscribing
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES

if TYPE_CHECKING:
    from fanlight_broker.core.condition import Condition

WAITING_MAX: Final = 65_536  # messages at a subscription that is joining; their bytes count for its outbox

# Offset, microseconds UTC, topic, number of its syntax, payload; and its Content, if it has more than these.
Encode = Callable[[int, int, bytes, int, bytes, Content | None], Any]


class ReplayRequest(NamedTuple):
    """What a client asks for. Without offset and since: the whole archive."""

    filter: bytes
    syntax: str
    offset: int | None = None
    epoch: int | None = None  # of the offset: a different one now is an error
    since: int | None = None  # microseconds UTC
    end: int | None = None  # messages before this offset; not live then
    live: bool = True
    condition: "Condition | None" = None  # on the content of its messages
    namespace: str = ""  # whose messages alone it has, by the topics as its clients spell them; "": the root's
    below: tuple[bytes, ...] = ()  # what its topics begin with, by the numbers of syntaxes; what follows is any octets
    last: bool = False  # begin with the batch that was written last and has any of its messages
    by: Subscriber | None = None  # who reads; None: the broker itself
    queue: str | None = None  # a stream, of which it has the messages
    patient: bool = False  # an offset that is not there is the nearest one, and what is lost is passed over


class ReplayStart(NamedTuple):
    """The extent of the archive when a replay begins, and where the replay begins in it."""

    archive: str  # its identity, for clients that keep a position
    start: int  # the oldest offset
    end: int  # the offset of the next message
    offset: int  # where the replay begins
    bytes: int  # that the whole archive takes, without its indexes
    oldest_end: int | None  # before which offset retention removes next; None: there is nothing that it would


class ReplayPart(NamedTuple):
    """A part of the archive."""

    messages: Sequence[Any] = ()  # each as `Encode` has made it
    offset: int = 0  # of the next message
    epoch: int = 0
    at_end: bool = False  # nothing is left, at present or before the requested end
    error: FanlightError | None = None
    kept: ReplayStart | None = None  # of the first part


class ReplayReader(Protocol):
    """Reads for one replay; one part at a time."""

    def ask(self, end: int | None, then: Callable[[ReplayPart], None]) -> None:
        """Call `then`, in the loop, with the next part before the offset `end`."""
        ...

    def begin_at(self, offset: int) -> None:
        """Begin there, and not where the request says. Before the first `ask`."""
        ...

    def close(self) -> None: ...


class ReplaySource(Protocol):
    """Keeps messages by offset."""

    def read(self, wanted: ReplayRequest, encode: Encode, size: Callable[[Any], int] = len) -> ReplayReader:
        """Read with `encode`, parts by the `size` of what that returns. Both are called in another thread.

        Raises LimitExceeded if too many replays are reading already."""
        ...

    def report_end(self, then: Callable[[int], None]) -> None:
        """Call `then`, in the loop, with the offset after everything published so far."""
        ...

    @property
    def written(self) -> int:
        """Messages, of those that came, which can be read. It counts as `NamedQueue.recorded`."""
        ...

    def wait(self, then: Callable[[], None]) -> None:
        """Call `then` once, in the loop, when more has been written, or removed."""
        ...


class ReplaysWithin:
    """A source for one namespace: whatever is asked for, only what was published there is read."""

    def __init__(self, source: ReplaySource, namespace: str) -> None:
        self._source, self._namespace = source, namespace

    def read(self, wanted: ReplayRequest, encode: Encode, size: Callable[[Any], int] = len) -> ReplayReader:
        return self._source.read(wanted._replace(namespace=self._namespace), encode, size)

    def report_end(self, then: Callable[[int], None]) -> None:
        self._source.report_end(then)

    @property
    def written(self) -> int:
        return self._source.written

    def wait(self, then: Callable[[], None]) -> None:
        self._source.wait(then)


class ReplayObserver(Protocol):
    """The protocol's side of a replay."""

    def replay_begun(self, replay: "Replay", part: ReplayPart) -> None:
        """The request is valid; `part` is the first part."""
        ...

    def replay_ended(self, replay: "Replay", part: ReplayPart) -> None:
        """The archive has been sent; live messages follow, or nothing."""
        ...

    def replay_failed(self, replay: "Replay", error: FanlightError) -> None:
        """It has failed. If it had not begun, nothing was sent."""
        ...


class ReplayState(Enum):
    READING = auto()
    JOINING = auto()
    CLOSING = auto()
    LIVE = auto()
    OVER = auto()


class Replay:
    """One replay of one client, with its own number. Raises InvalidFilter, LimitExceeded."""

    def __init__(
        self, subscribing: Subscribing, flow: Flow, source: ReplaySource, client: Client, listener: ReplayObserver,
        number: int, wanted: ReplayRequest, encode: Encode,
    ) -> None:
        self._subscribing = subscribing
        self._permitted = subscribing.enforcement.generation  # the permissions by which it was checked
        self._partly = self._check(client, wanted)
        self.source, self.client, self.listener = source, client, listener
        self._flow = flow
        self.number, self.wanted = number, wanted._replace(by=client.subscriber)
        self.state = ReplayState.READING
        self.delivered = 0
        self.begun = False
        self.joins = 0  # attempts
        self._end: int | None = None
        self._part = ReplayPart()
        self._asked = False
        self._subscription: Subscription | None = None
        self._keeps_topics = subscribing.enforcement.restricts(client.subscriber.origin)
        self._place = Replaying(subscribing.shares, client.subscriber.share, client.memberships)
        try:
            self._reading = source.read(self.wanted, with_topic(encode), size_of) if self._keeps_topics \
                else source.read(self.wanted, encode)
        except Exception:
            self._place.end()
            raise

    def start(self) -> None:
        if self.wanted.live:
            self._ask()
        else:
            self.source.report_end(self._end_known)

    def drained(self) -> None:
        """The outbox is empty and has room for the next part."""
        if self.state in (ReplayState.READING, ReplayState.CLOSING) and not self._asked:
            self._ask()

    def deny(self) -> None:
        """Permissions do not allow it any more."""
        self._fail(NotPermitted("no permission any more for the replay"))

    def cancel(self) -> None:
        """End it, whatever is still under way."""
        self._close(ReplayState.OVER)
        self._leave()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _check(self, client: Client, wanted: ReplayRequest) -> bool:
        """May it be replayed, and subscribed to? True: partly. Raises the errors of SUBSCRIBE."""
        subscriber, subscribing = client.subscriber, self._subscribing
        partly = subscribing.check(subscriber, wanted.filter, wanted.syntax, condition=wanted.condition)
        return subscribing.enforcement.check_filter(subscriber, Action.REPLAY, wanted.filter, wanted.syntax) or partly

    def _check_again(self) -> None:
        """Permissions may be others than before. Raises NotPermitted."""
        enforcement = self._subscribing.enforcement
        if self._permitted == enforcement.generation:
            return
        self._permitted = enforcement.generation
        self._partly = self._check(self.client, self.wanted)
        if self._partly and not self._keeps_topics:
            raise NotPermitted("permissions have changed; replay again")

    def _allowed(self, messages: Sequence[Any]) -> list[bytes]:
        """Those that the client may have."""
        if not self._keeps_topics:
            return list(messages)
        if not self._partly:
            return [octets for octets, _, _ in messages]
        may_replay, subscriber = self._subscribing.enforcement.may_replay, self.client.subscriber
        known: dict[tuple[bytes, int], bool] = {}
        allowed = []
        for octets, topic, syntax in messages:
            if (topic, syntax) not in known:
                known[topic, syntax] = may_replay(subscriber, topic, syntax)
            if known[topic, syntax]:
                allowed.append(octets)
        return allowed

    def _fail(self, error: FanlightError) -> None:
        self.cancel()
        self.listener.replay_failed(self, error)

    def _ask(self) -> None:
        pace = self.client.outbox.delivery
        if pace is not None and pace.owing(self._flow.ledger.now) is not None:
            self._flow.refill(self.client.outbox)  # which `drained` follows, when it owes nothing
            return
        self._asked = True
        self._reading.ask(self._end, self._part_read)

    def _part_read(self, part: ReplayPart) -> None:
        self._asked = False
        if self.state is ReplayState.OVER:
            return
        if self.client.outbox.closed:
            self.cancel()
            return
        if part.error is not None:
            self._fail(part.error)
            return
        try:
            self._check_again()
        except FanlightError as error:
            self._fail(error)
            return
        if not self.begun:
            self.begun = True
            self.listener.replay_begun(self, part)
        self._part = part
        messages = self._allowed(part.messages)
        self.delivered += len(messages)
        if messages:
            octets = b"".join(messages)
            self.client.outbox.write(octets)
            if self.client.outbox.delivery is not None:  # which the outbox takes for answers
                self.client.outbox.delivery.take(len(messages), len(octets), self._flow.ledger.now)
        if not part.at_end:
            if part.messages:
                self._flow.refill(self.client.outbox)
            else:
                self._ask()
        elif self._end is not None:
            self._caught_up()
        else:
            self._join()

    def _join(self) -> None:
        self.state = ReplayState.JOINING
        self.joins += 1
        wanted, client = self.wanted, self.client
        try:
            partly = self._subscribing.check(
                client.subscriber, wanted.filter, wanted.syntax, condition=wanted.condition
            )
            subscription = Subscription(
                client.outbox, self._subscribing.router.variants.of(client.format), self.number, wanted.filter,
                SYNTAXES.index(wanted.syntax), credit=0, waiting_max=WAITING_MAX, condition=wanted.condition,
            )
            subscription.partly = partly
            self._subscribing.begin(client.subscriber, subscription, None)
        except FanlightError as error:
            self._fail(error)
            return
        self._subscription = subscription
        self.source.report_end(self._end_known)

    def _end_known(self, offset: int) -> None:
        if self.state is ReplayState.OVER:
            return
        self.state = ReplayState.CLOSING
        self._end = offset if self.wanted.end is None else min(offset, self.wanted.end)
        self._ask()

    def _caught_up(self) -> None:
        subscription = self._subscription
        if subscription is not None and subscription.dropped:
            # The dropped messages are in the archive: continue reading, and join again.
            self._leave()
            self._end = None
            self.state = ReplayState.READING
            self._ask()
            return
        self._close(ReplayState.LIVE if subscription is not None else ReplayState.OVER)
        self.listener.replay_ended(self, self._part)
        if subscription is not None:
            self._subscription = None
            subscription.lift_credit()

    def _leave(self) -> None:
        if self._subscription is not None and self._subscription in self.client.subscriber.subscriptions:
            self._subscribing.end(self._subscription)
        self._subscription = None

    def _close(self, state: ReplayState) -> None:
        self.state = state
        self._reading.close()
        self._place.end()


def with_topic(encode: Encode) -> Encode:
    """The same, and the topic: permissions are asked in the loop, and not in the reader's thread."""

    def both(
        offset: int, timestamp: int, topic: bytes, syntax: int, payload: bytes, content: Content | None
    ) -> tuple[Any, bytes, int]:
        return encode(offset, timestamp, topic, syntax, payload, content), topic, syntax

    return both


def size_of(message: tuple[bytes, bytes, int]) -> int:
    return len(message[0])
