"""The broker's error tree. An error carries its numbers; one table per protocol turns it into that protocol's code."""

from typing import Any


class FanlightError(Exception):
    """Anything the broker refuses. The text is for people and says what to do; `details` is for programs.

    passing  the same request may be accepted later, and nothing is wrong with it
    """

    passing = False

    def __init__(self, text: str, **details: Any) -> None:
        super().__init__(text)
        self.text = text
        self.details = details


class ProtocolViolation(FanlightError):
    """A peer broke its protocol; its connection is closed."""


class FrameTooLarge(FanlightError):
    """A frame above the limit; its connection is closed, for nothing behind it can be read."""

    def __init__(self, size: int, limit: int, setting: str) -> None:
        super().__init__(
            f"a frame of {size} bytes; this listener accepts at most {limit} ({setting})", size=size, limit=limit
        )


class UnsupportedVersion(FanlightError):
    """No protocol version in common."""


class AuthenticationFailed(FanlightError):
    """Unknown user, wrong password, or no credentials where some are needed: never says which."""


class NotPermitted(FanlightError):
    """What was asked is not allowed to this client."""


class InvalidTopic(FanlightError, ValueError):
    """A topic name that its syntax does not allow."""


class InvalidFilter(FanlightError, ValueError):
    """A topic filter that its syntax does not allow."""


class InvalidSelector(FanlightError, ValueError):
    """A selector that cannot be read, or is beyond the limits. `position` is the byte at which it goes wrong."""


class SubscriptionInUse(FanlightError):
    def __init__(self, number: int) -> None:
        super().__init__(
            f"subscription {number} is in use on this connection; unsubscribe it or choose another number",
            subscription=number,
        )


class NoSuchSubscription(FanlightError):
    def __init__(self, number: int) -> None:
        super().__init__(f"there is no subscription {number} on this connection", subscription=number)


class NoSuchQueue(FanlightError):
    def __init__(self, name: str) -> None:
        super().__init__(f"there is no queue {name!r}", consumer=name)


class QueueFull(FanlightError):
    """A named queue that refuses publishers has no room for a message."""

    passing = True


class QueueInUse(FanlightError):
    """advice: in place of that to leave the option out"""

    def __init__(self, name: str, option: str, advice: str = "leave that out, or choose another name") -> None:
        super().__init__(f"the queue {name!r} exists with another {option}; {advice}", consumer=name, option=option)


class QueueNotEmpty(FanlightError):
    """A queue that is to be removed has messages or consumers."""

    def __init__(self, name: str, messages: int, consumers: int) -> None:
        super().__init__(
            f"the queue {name!r} has {messages} messages and {consumers} consumers; purge or move the messages and end "
            "the consumers, or remove it by force: its messages are lost then",
            consumer=name, messages=messages, consumers=consumers,
        )


class MessagesGone(FanlightError):
    """Messages that are asked for are not kept any more: `first` to before `end`."""


class ReplayFailed(FanlightError):
    """What is kept cannot be read now."""


class LimitExceeded(FanlightError):
    """More than a limit allows. `limit` is the setting's name, `value` its value."""

    def __init__(self, text: str, limit: str, value: float) -> None:
        super().__init__(f"{text}; at most {value} ({limit})", limit=limit, value=value)


class RateExceeded(LimitExceeded):
    """Its publisher is over its rate now; the same message may be accepted later."""

    passing = True


class LoginRateExceeded(RateExceeded):
    """The clients of one holder of a quota log in too often; a later login may be accepted."""


class StoreUnavailable(FanlightError):
    """What must survive a restart cannot be stored now: the disk is full or broken."""

    passing = True

    def __init__(self) -> None:
        super().__init__("the broker cannot store anything now, its disk is full or broken; try again later")


class Unsupported(FanlightError):
    """A frame type, option or value that this broker does not know."""
