"""The frames that are legal in each state of a native connection."""

from typing import Final

from fanlight_broker.core.connection import State
from fanlight_broker.protocols.native.frames import (
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

# PUBLISH, which does not become a value, is legal in CONNECTED alone.
LEGAL: Final[dict[State, frozenset[type[Incoming]]]] = {
    State.AWAITING: frozenset({Hello, Goodbye}),
    State.VERIFYING: frozenset(),
    State.AUTHENTICATING: frozenset(),  # never: there is no exchange
    State.CONNECTED: frozenset({Subscribe, Replay, Unsubscribe, Credit, Ping, Pong, Goodbye}),
    State.CLOSED: frozenset(),
}
