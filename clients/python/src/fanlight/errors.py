"""Every error of the SDK, in one tree.

    FanlightError
     ├─ InvalidURL                      the address cannot be read
     ├─ ConnectError                    nobody answers there
     ├─ ConnectionLost                  there was a connection; what waited for an answer gets this
     ├─ ConnectionClosed                the client was closed by its own program
     ├─ RequestTimeout                  the answer did not come in time
     ├─ MessageTimeout                  no message came in time: subscription.next(timeout=...)
     ├─ DrainTimeout                    a drain ended with something left over
     ├─ NoResponders                    a request reached no subscription
     ├─ SubscriptionEnded               no further message will come
     ├─ SubscriptionOverflow            the local queue was full (overflow="error")
     ├─ ReadingPaused                   an answer cannot come: an unread subscription holds up the connection
     ├─ SerializationError              a value could not be encoded or decoded
     ├─ ProtocolError                   a frame that is not one
     └─ BrokerError                     the broker said no; one class for each code of its ERROR frame

Each carries `code`, `details` (the numbers) and `request` (the number of the request it answers, or None).
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class FanlightError(Exception):
    """Base of all errors of this package.

    `code` is the protocol's word where there is one, else a word of the SDK's own; `details` a mapping of the
    numbers in the text; `request` the protocol's request number, or None.
    """

    default_code: ClassVar[str] = "error"

    def __init__(
        self,
        text: str,
        *,
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
        request: int | None = None,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.code = code or self.default_code
        self.details: dict[str, Any] = dict(details or {})
        self.request = request


class InvalidURL(FanlightError, ValueError):
    default_code = "invalid_url"


class ConnectError(FanlightError, ConnectionError):
    """No connection could be made. `details`: `host`, `port`."""

    default_code = "cannot_connect"


class ConnectionLost(FanlightError, ConnectionError):
    """The connection broke or the broker said goodbye; `code` is its reason where it gave one."""

    default_code = "connection_lost"


class ConnectionClosed(FanlightError, ConnectionError):
    """The client is closed, or was never opened."""

    default_code = "closed"


class RequestTimeout(FanlightError, TimeoutError):
    """No answer in time. `details`: `seconds`."""

    default_code = "timeout"


class MessageTimeout(FanlightError, TimeoutError):
    """No message came to a subscription in time. `details`: `seconds`."""

    default_code = "message_timeout"


class DrainTimeout(RequestTimeout):
    """A drain ended with something left. `details`: `unread` and `unsent`, in messages, and `seconds`."""

    default_code = "drain_timeout"


class NoResponders(FanlightError):
    """The broker routed a request to no subscription. `details`: `topic`."""

    default_code = "no_responders"


class SubscriptionEnded(FanlightError):
    """The subscription has ended and its queue is empty."""

    default_code = "subscription_ended"


class SubscriptionOverflow(FanlightError):
    """The local queue was full. `details`: `messages`, `bytes`, `dropped`."""

    default_code = "subscription_overflow"


class ReadingPaused(FanlightError):
    """An answer cannot be received, because unread messages hold up the connection. `details`:
    `subscription`."""

    default_code = "reading_paused"


class SerializationError(FanlightError, ValueError):
    default_code = "serialization"


class ProtocolError(FanlightError):
    """A malformed frame, or one not allowed now, found by this side."""

    default_code = "protocol_error"


class BrokerError(FanlightError):
    """The broker answered ERROR; also the class of codes that this version of the SDK does not know."""

    default_code = "broker_error"


class ProtocolViolation(BrokerError):
    """The broker found a frame of ours malformed or out of place."""

    default_code = "protocol_error"


class FrameTooLarge(BrokerError):
    """Raised before sending, too: a frame above the limit would cost the connection. `details`: `size`,
    `limit`."""

    default_code = "frame_too_large"


class UnsupportedVersion(BrokerError):
    default_code = "unsupported_version"


class AuthenticationFailed(BrokerError):
    default_code = "authentication_failed"


class NotPermitted(BrokerError):
    default_code = "not_permitted"


class InvalidTopic(BrokerError, ValueError):
    default_code = "invalid_topic"


class InvalidFilter(BrokerError, ValueError):
    default_code = "invalid_filter"


class InvalidSelector(BrokerError, ValueError):
    """`details`: `position`, the byte of the text at which it goes wrong."""

    default_code = "invalid_selector"


class SubscriptionInUse(BrokerError):
    default_code = "subscription_in_use"


class NoSuchSubscription(BrokerError):
    default_code = "no_such_subscription"


class LimitExceeded(BrokerError):
    """Also raised locally, for limits of the SDK. `details`: `limit` (its name), `value`."""

    default_code = "limit_exceeded"


class NoSuchQueue(BrokerError):
    """`details`: `consumer`, its name."""

    default_code = "no_such_consumer"


class QueueInUse(BrokerError):
    """A queue of this name exists with another filter or option. `details`: `consumer`, `option`."""

    default_code = "consumer_in_use"


class QueueFull(BrokerError):
    """The message was not published: a queue that is to get it has no room."""

    default_code = "queue_full"


class QueueNotEmpty(BrokerError):
    """A queue that is to be removed has messages or consumers. `details`: `consumer`, `messages`, `consumers`."""

    default_code = "queue_not_empty"


class Unsupported(BrokerError):
    default_code = "unsupported"


class MessagesGone(BrokerError):
    """What a replay asks for is not in the archive any more. `details`: `first`, `end`, offsets."""

    default_code = "messages_gone"


class ReplayFailed(BrokerError):
    """The broker cannot read its archive."""

    default_code = "replay_failed"


BROKER_ERRORS: dict[str, type[BrokerError]] = {
    cls.default_code: cls
    for cls in (
        ProtocolViolation,
        FrameTooLarge,
        UnsupportedVersion,
        AuthenticationFailed,
        NotPermitted,
        InvalidTopic,
        InvalidFilter,
        InvalidSelector,
        SubscriptionInUse,
        NoSuchSubscription,
        NoSuchQueue,
        QueueInUse,
        QueueFull,
        QueueNotEmpty,
        LimitExceeded,
        Unsupported,
        MessagesGone,
        ReplayFailed,
    )
}

# Reasons after which another attempt would only be refused again.
FATAL_CODES = frozenset({"authentication_failed", "not_permitted", "unsupported_version"})


def from_broker(
    code: str, text: str, details: Mapping[str, Any] | None = None, request: int | None = None
) -> BrokerError:
    """The exception for an ERROR frame."""
    cls = BROKER_ERRORS.get(code, BrokerError)
    return cls(text or code, code=code, details=details, request=request)
