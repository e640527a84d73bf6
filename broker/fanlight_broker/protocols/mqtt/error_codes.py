"""The broker's errors as reason codes: one table, and the reasons of a goodbye."""

from typing import Final

from fanlight_broker.core import errors
from fanlight_broker.protocols.mqtt.errors import PacketError
from fanlight_broker.protocols.mqtt.fixed_header import PacketType
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import CARRIED_BY, ReasonCode

REASON_STRING_MAX: Final = 1_000  # characters

REASON_CODES: Final[dict[type[errors.FanlightError], ReasonCode]] = {
    errors.AuthenticationFailed: ReasonCode.BAD_USER_NAME_OR_PASSWORD,
    errors.NotPermitted: ReasonCode.NOT_AUTHORIZED,
    errors.InvalidTopic: ReasonCode.TOPIC_NAME_INVALID,
    errors.InvalidFilter: ReasonCode.TOPIC_FILTER_INVALID,
    errors.InvalidSelector: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,  # 3.9.3
    errors.LimitExceeded: ReasonCode.QUOTA_EXCEEDED,
    errors.RateExceeded: ReasonCode.QUOTA_EXCEEDED,
    errors.LoginRateExceeded: ReasonCode.CONNECTION_RATE_EXCEEDED,
    errors.StoreUnavailable: ReasonCode.QUOTA_EXCEEDED,
    errors.QueueFull: ReasonCode.QUOTA_EXCEEDED,
    errors.NoSuchSubscription: ReasonCode.NO_SUBSCRIPTION_EXISTED,
}

# Why the core closes a connection, as a DISCONNECT says it (3.14.2.1).
GOODBYES: Final[dict[str, ReasonCode]] = {
    "taken_over": ReasonCode.SESSION_TAKEN_OVER,
    "shutting_down": ReasonCode.SERVER_SHUTTING_DOWN,
    "idle_timeout": ReasonCode.KEEP_ALIVE_TIMEOUT,
    "kicked": ReasonCode.ADMINISTRATIVE_ACTION,
    "slow_consumer": ReasonCode.QUOTA_EXCEEDED,
    "too_many_connections": ReasonCode.QUOTA_EXCEEDED,
    "credentials_expired": ReasonCode.MAXIMUM_CONNECT_TIME,
    "authentication_failed": ReasonCode.NOT_AUTHORIZED,
    "not_permitted": ReasonCode.NOT_AUTHORIZED,
    "internal_error": ReasonCode.UNSPECIFIED_ERROR,
}


def reason_of(error: errors.FanlightError) -> ReasonCode:
    if isinstance(error, PacketError):
        return error.reason_code
    return REASON_CODES.get(type(error), ReasonCode.UNSPECIFIED_ERROR)


def explaining(error: errors.FanlightError) -> Properties:
    """The error in words, for people who look at the packets (4.13, Reason String)."""
    return Properties(reason_string=error.text[:REASON_STRING_MAX])


def carried(reason: ReasonCode, kind: PacketType) -> ReasonCode:
    """A reason as a packet may say it (2.4): itself, or the nearest that this packet carries."""
    if reason in CARRIED_BY[kind]:
        return reason
    if reason is ReasonCode.BAD_USER_NAME_OR_PASSWORD:  # CONNACK has it, DISCONNECT has not
        return ReasonCode.NOT_AUTHORIZED
    return ReasonCode.UNSPECIFIED_ERROR
