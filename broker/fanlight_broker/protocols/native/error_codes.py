"""How the broker's errors are put in the native protocol (section 7): the code, and whether the connection closes."""

from typing import Final, NamedTuple

from fanlight_broker.core import errors


class Code(NamedTuple):
    name: str
    closes: bool


CODES: Final[dict[type[errors.FanlightError], Code]] = {
    errors.ProtocolViolation: Code("protocol_error", closes=True),
    errors.FrameTooLarge: Code("frame_too_large", closes=True),
    errors.UnsupportedVersion: Code("unsupported_version", closes=True),
    errors.AuthenticationFailed: Code("authentication_failed", closes=True),
    errors.NotPermitted: Code("not_permitted", closes=False),
    errors.InvalidTopic: Code("invalid_topic", closes=False),
    errors.InvalidFilter: Code("invalid_filter", closes=False),
    errors.InvalidSelector: Code("invalid_selector", closes=False),
    errors.SubscriptionInUse: Code("subscription_in_use", closes=False),
    errors.NoSuchSubscription: Code("no_such_subscription", closes=False),
    errors.LimitExceeded: Code("limit_exceeded", closes=False),
    errors.StoreUnavailable: Code("limit_exceeded", closes=False),
    errors.MessagesGone: Code("messages_gone", closes=False),
    errors.ReplayFailed: Code("replay_failed", closes=False),
    errors.NoSuchQueue: Code("no_such_consumer", closes=False),
    errors.RateExceeded: Code("limit_exceeded", closes=False),
    errors.LoginRateExceeded: Code("limit_exceeded", closes=True),
    errors.QueueFull: Code("queue_full", closes=False),
    errors.QueueInUse: Code("consumer_in_use", closes=False),
    errors.QueueNotEmpty: Code("queue_not_empty", closes=False),
    errors.Unsupported: Code("unsupported", closes=False),
}
