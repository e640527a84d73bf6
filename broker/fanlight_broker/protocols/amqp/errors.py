"""What is wrong with a client's frames or requests, with its reply code; and the core's errors as reply codes."""

from typing import Final

from fanlight_broker.core import errors
from fanlight_broker.protocols.amqp.reply_codes import OF_CHANNELS, ReplyCode

TEXT_BYTES_MAX: Final = 255  # of a short string


class AmqpError(errors.FanlightError):
    """An error with its reply code. It closes the channel, or the connection: by its code, unless `closes_all` says."""

    def __init__(self, code: ReplyCode, text: str, *, closes_all: bool | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.closes_all = code not in OF_CHANNELS if closes_all is None else closes_all

    @property
    def reply_text(self) -> str:
        return reply_text(self.code, self.text)


def reply_text(code: ReplyCode, text: str) -> str:
    """As RabbitMQ has it: the code's name, and a sentence; cut to what a short string holds."""
    whole = f"{code.name} - {text}".encode()
    return whole[:TEXT_BYTES_MAX].decode(errors="ignore")


# Of the core's errors: the reply code that a request is refused with.
CODES: Final[dict[type[errors.FanlightError], ReplyCode]] = {
    errors.ProtocolViolation: ReplyCode.SYNTAX_ERROR,
    errors.FrameTooLarge: ReplyCode.FRAME_ERROR,
    errors.UnsupportedVersion: ReplyCode.NOT_IMPLEMENTED,
    errors.AuthenticationFailed: ReplyCode.ACCESS_REFUSED,
    errors.NotPermitted: ReplyCode.ACCESS_REFUSED,
    errors.InvalidTopic: ReplyCode.PRECONDITION_FAILED,
    errors.InvalidFilter: ReplyCode.PRECONDITION_FAILED,
    errors.InvalidSelector: ReplyCode.PRECONDITION_FAILED,
    errors.SubscriptionInUse: ReplyCode.NOT_ALLOWED,
    errors.NoSuchSubscription: ReplyCode.NOT_FOUND,
    errors.LimitExceeded: ReplyCode.PRECONDITION_FAILED,
    errors.RateExceeded: ReplyCode.PRECONDITION_FAILED,
    errors.LoginRateExceeded: ReplyCode.NOT_ALLOWED,
    errors.StoreUnavailable: ReplyCode.PRECONDITION_FAILED,
    errors.MessagesGone: ReplyCode.PRECONDITION_FAILED,
    errors.ReplayFailed: ReplyCode.INTERNAL_ERROR,
    errors.NoSuchQueue: ReplyCode.NOT_FOUND,
    errors.QueueFull: ReplyCode.PRECONDITION_FAILED,
    errors.QueueInUse: ReplyCode.PRECONDITION_FAILED,
    errors.QueueNotEmpty: ReplyCode.PRECONDITION_FAILED,
    errors.Unsupported: ReplyCode.NOT_IMPLEMENTED,
}


def amqp_error(error: errors.FanlightError) -> AmqpError:
    """Any of the broker's errors with its reply code."""
    return error if isinstance(error, AmqpError) else AmqpError(CODES[type(error)], error.text)


def frame_error(text: str) -> AmqpError:
    return AmqpError(ReplyCode.FRAME_ERROR, text)


def syntax_error(text: str) -> AmqpError:
    return AmqpError(ReplyCode.SYNTAX_ERROR, text)
