"""Fanlight's Python client.

    import fanlight

    async with fanlight.connect("fanlight://127.0.0.1:7420") as client:
        async with client.subscribe("stock.*.AAPL") as quotes:
            await client.publish("stock.nasdaq.AAPL", b"189.95")
            async for message in quotes:
                print(message.topic, message.payload)

`fanlight.sync` has the same names without `async`; it is imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from .backoff import Backoff
from .client import Client
from .connecting import DEFAULT_URL, Connecting, connect
from .delayed import DelayedMessage, DelayedMessages
from .errors import (
    AuthenticationFailed,
    BrokerError,
    ConnectError,
    ConnectionClosed,
    ConnectionLost,
    DrainTimeout,
    FanlightError,
    FrameTooLarge,
    InvalidFilter,
    InvalidSelector,
    InvalidTopic,
    InvalidURL,
    LimitExceeded,
    MessagesGone,
    MessageTimeout,
    NoResponders,
    NoSuchQueue,
    NoSuchSubscription,
    NotPermitted,
    ProtocolError,
    ProtocolViolation,
    QueueFull,
    QueueInUse,
    QueueNotEmpty,
    ReadingPaused,
    ReplayFailed,
    RequestTimeout,
    SerializationError,
    SubscriptionEnded,
    SubscriptionInUse,
    SubscriptionOverflow,
    Unsupported,
    UnsupportedVersion,
)
from .marks import Mark, Routed
from .message import Message
from .queue import FromArchive, QueueMessage, QueueOptions, QueueSubscription
from .queues import Moved, QueueInfo, QueueState, WaitingMessage
from .replay import Replay
from .serializers import BYTES, JSON, MSGPACK, Serializer
from .stats import Stats, SubscriptionStats
from .subscription import Subscription

__version__ = "0.1.0"

__all__ = [
    "BYTES",
    "DEFAULT_URL",
    "JSON",
    "MSGPACK",
    "AuthenticationFailed",
    "Backoff",
    "BrokerError",
    "Client",
    "ConnectError",
    "Connecting",
    "ConnectionClosed",
    "ConnectionLost",
    "DelayedMessage",
    "DelayedMessages",
    "DrainTimeout",
    "FanlightError",
    "FrameTooLarge",
    "FromArchive",
    "InvalidFilter",
    "InvalidSelector",
    "InvalidTopic",
    "InvalidURL",
    "LimitExceeded",
    "Mark",
    "Message",
    "MessageTimeout",
    "MessagesGone",
    "Moved",
    "NoResponders",
    "NoSuchQueue",
    "NoSuchSubscription",
    "NotPermitted",
    "ProtocolError",
    "ProtocolViolation",
    "QueueFull",
    "QueueInUse",
    "QueueInfo",
    "QueueMessage",
    "QueueNotEmpty",
    "QueueOptions",
    "QueueState",
    "QueueSubscription",
    "ReadingPaused",
    "Replay",
    "ReplayFailed",
    "RequestTimeout",
    "Routed",
    "SerializationError",
    "Serializer",
    "Stats",
    "Subscription",
    "SubscriptionEnded",
    "SubscriptionInUse",
    "SubscriptionOverflow",
    "SubscriptionStats",
    "Unsupported",
    "UnsupportedVersion",
    "WaitingMessage",
    "connect",
    "sync",
]

if TYPE_CHECKING:
    from . import sync as sync
else:

    def __getattr__(name: str) -> Any:
        if name == "sync":
            return importlib.import_module(".sync", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
