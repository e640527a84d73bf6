"""The frames that are legal in each state of a native connection."""

from typing import Final

from fanlight_broker.core.connection import ConnectionState
from fanlight_broker.protocols.native.frames import (
    AckFrame,
    ChangeConsumerFrame,
    ConsumeFrame,
    CreditFrame,
    GoodbyeFrame,
    HelloFrame,
    Incoming,
    InProgressFrame,
    NackFrame,
    PingFrame,
    PongFrame,
    QueueFrame,
    ReplayFrame,
    SubscribeFrame,
    TermFrame,
    UnsubscribeFrame,
)

# PUBLISH, which does not become a value, is legal in CONNECTED alone.
LEGAL: Final[dict[ConnectionState, frozenset[type[Incoming]]]] = {
    ConnectionState.AWAITING: frozenset({HelloFrame, GoodbyeFrame}),
    ConnectionState.VERIFYING: frozenset(),
    ConnectionState.AUTHENTICATING: frozenset(),  # never: there is no exchange
    ConnectionState.CONNECTED: frozenset({
        SubscribeFrame, ReplayFrame, UnsubscribeFrame, CreditFrame, PingFrame, PongFrame, GoodbyeFrame,
        ConsumeFrame, ChangeConsumerFrame, AckFrame, NackFrame, TermFrame, InProgressFrame, QueueFrame,
    }),
    ConnectionState.CLOSED: frozenset(),
}
