"""A replay: what was published before, from where it is kept, and then what is published now: no gap, nothing twice.

    READING   parts of what is kept, each when the one before is out of the outbox
       | nothing is left to read
    JOINING   the subscription is in force, without credit: what is published now waits at it.
       |      And the source says behind which offset that begins
    CLOSING   what is kept, up to there
       |
    LIVE      what waited, then what comes: an ordinary subscription

If more came meanwhile than may wait, the subscription is taken out of force again and reading goes on: what was dropped
is kept too. Who reads is on the other side of `ReplaySource`; how a message is written is the protocol's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol

from fanlight_broker.core.content import Content
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.flow import Flow
from fanlight_broker.core.subscriber import Client
from fanlight_broker.core.subscribing import Subscribing
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES

WAITING_MAX: Final = 65_536  # messages at a subscription that is joining; their bytes count for its outbox

# Offset, microseconds UTC, topic, number of its syntax, payload; and all of what it says, if that is more than these.
Encode = Callable[[int, int, bytes, int, bytes, Content | None], bytes]


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What is asked for. Neither offset nor since: all there is."""

    filter: bytes
    syntax: str
    offset: int | None = None
    epoch: int | None = None  # of the offset: another one now is an error
    since: int | None = None  # microseconds UTC
    end: int | None = None  # of what is before this offset; not live then
    live: bool = True


class ReplayStart(NamedTuple):
    """What there is when a replay begins, and where in it that does."""

    archive: str  # its identity, for who keeps a position
    start: int  # the oldest offset
    end: int  # the next one that is given
    offset: int  # where it begins


class ReplayPart(NamedTuple):
    """Some of what is kept."""

    octets: bytes = b""  # whole frames
    messages: int = 0
    offset: int = 0  # of what comes next
    epoch: int = 0
    at_end: bool = False  # there is nothing more, at present or before the end that was asked for
    error: FanlightError | None = None
    kept: ReplayStart | None = None  # of the first part


class ReplayReader(Protocol):
    """Reads for one replay; one part at a time."""

    def ask(self, end: int | None, then: Callable[[ReplayPart], None]) -> None:
        """Call `then`, in the loop, with the next part; of what is before the offset `end`."""
        ...

    def close(self) -> None: ...


class ReplaySource(Protocol):
    """Keeps messages by offset."""

    def read(self, wanted: ReplayRequest, encode: Encode) -> ReplayReader:
        """Raises LimitExceeded if there are too many readings already."""
        ...

    def report_end(self, then: Callable[[int], None]) -> None:
        """Call `then`, in the loop, with the offset behind all that was published until now."""
        ...


class ReplayObserver(Protocol):
    """The protocol's side of a replay."""

    def replay_begun(self, replay: "Replay", part: ReplayPart) -> None:
        """What is asked for is there; `part` is the first of it."""
        ...

    def replay_ended(self, replay: "Replay", part: ReplayPart) -> None:
        """All that was kept is sent; what follows is live, or nothing follows."""
        ...

    def replay_failed(self, replay: "Replay", error: FanlightError) -> None:
        """It is over. If it had not begun, nothing was sent."""
        ...


class ReplayState(Enum):
    READING = auto()
    JOINING = auto()
    CLOSING = auto()
    LIVE = auto()
    OVER = auto()


class Replay:
    """One replay of one client, under a number of its own. Raises InvalidFilter, LimitExceeded."""

    def __init__(
        self, subscribing: Subscribing, flow: Flow, source: ReplaySource, client: Client, listener: ReplayObserver,
        number: int, wanted: ReplayRequest, encode: Encode,
    ) -> None:
        subscribing.check(client.subscriber, wanted.filter, wanted.syntax)
        self.source, self.client, self.listener = source, client, listener
        self._subscribing, self._flow = subscribing, flow
        self.number, self.wanted = number, wanted
        self.state = ReplayState.READING
        self.delivered = 0
        self.begun = False
        self.joins = 0  # times it tried to
        self._end: int | None = None
        self._part = ReplayPart()
        self._asked = False
        self._subscription: Subscription | None = None
        self._reading = source.read(wanted, encode)

    def start(self) -> None:
        if self.wanted.live:
            self._ask()
        else:
            self.source.report_end(self._end_known)

    def drained(self) -> None:
        """The outbox is empty: there is room for the next part."""
        if self.state in (ReplayState.READING, ReplayState.CLOSING) and not self._asked:
            self._ask()

    def cancel(self) -> None:
        """It is over, whatever is still to come."""
        self._close(ReplayState.OVER)
        self._leave()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
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
            self.cancel()
            self.listener.replay_failed(self, part.error)
            return
        if not self.begun:
            self.begun = True
            self.listener.replay_begun(self, part)
        self._part = part
        self.delivered += part.messages
        if part.octets:
            self.client.outbox.write(part.octets)
        if not part.at_end:
            if part.octets:
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
            self._subscribing.check(client.subscriber, wanted.filter, wanted.syntax)
            subscription = Subscription(
                client.outbox, self._subscribing.router.variants.of(client.format), self.number, wanted.filter,
                SYNTAXES.index(wanted.syntax), credit=0, waiting_max=WAITING_MAX,
            )
            self._subscribing.begin(client.subscriber, subscription, None)
        except FanlightError as error:
            self.cancel()
            self.listener.replay_failed(self, error)
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
            # The rest is kept as well: read on, and join again.
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
        if self._subscription is not None:
            self._subscribing.end(self._subscription)
            self._subscription = None

    def _close(self, state: ReplayState) -> None:
        self.state = state
        self._reading.close()
