"""The states of a native connection, and the frames that are legal in each."""

from enum import Enum, auto
from typing import Final

from broker.protocols.native.frames import (
    Credit,
    Goodbye,
    Hello,
    Incoming,
    Ping,
    Pong,
    Replay,
    Subscribe,
    Unsubscribe,
)


class State(Enum):
    AWAITING_HELLO = auto()
    AUTHENTICATING = auto()  # nothing is read until the authenticator has answered
    CONNECTED = auto()
    CLOSED = auto()  # GOODBYE has been sent or received: nothing more is processed


# PUBLISH, which does not become a value, is legal in CONNECTED alone.
LEGAL: Final[dict[State, frozenset[type[Incoming]]]] = {
    State.AWAITING_HELLO: frozenset({Hello, Goodbye}),
    State.AUTHENTICATING: frozenset(),
    State.CONNECTED: frozenset({Subscribe, Replay, Unsubscribe, Credit, Ping, Pong, Goodbye}),
    State.CLOSED: frozenset(),
}
