"""The reply codes of the specification (1.2), and which of them close the connection rather than a channel."""

from enum import IntEnum
from typing import Final


class ReplyCode(IntEnum):
    SUCCESS = 200
    CONTENT_TOO_LARGE = 311
    NO_ROUTE = 312
    NO_CONSUMERS = 313
    CONNECTION_FORCED = 320
    INVALID_PATH = 402
    ACCESS_REFUSED = 403
    NOT_FOUND = 404
    RESOURCE_LOCKED = 405
    PRECONDITION_FAILED = 406
    FRAME_ERROR = 501
    SYNTAX_ERROR = 502
    COMMAND_INVALID = 503
    CHANNEL_ERROR = 504
    UNEXPECTED_FRAME = 505
    RESOURCE_ERROR = 506
    NOT_ALLOWED = 530
    NOT_IMPLEMENTED = 540
    INTERNAL_ERROR = 541


# The "soft errors" of the specification.
OF_CHANNELS: Final = frozenset({
    ReplyCode.CONTENT_TOO_LARGE, ReplyCode.NO_ROUTE, ReplyCode.NO_CONSUMERS, ReplyCode.ACCESS_REFUSED,
    ReplyCode.NOT_FOUND, ReplyCode.RESOURCE_LOCKED, ReplyCode.PRECONDITION_FAILED,
})
