"""Problem details (RFC 9457): how the API says what is wrong."""

from http import HTTPStatus
from typing import Any, Final

from fanlight_broker.core import errors

CONTENT_TYPE: Final = "application/problem+json"


class ApiError(Exception):
    """An error as it is answered. members: numbers beside the text, for programs."""

    def __init__(self, status: int, detail: str, **members: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.members = status, detail, members

    def body(self) -> dict[str, Any]:
        return {
            **self.members, "type": "about:blank", "title": HTTPStatus(self.status).phrase, "status": self.status,
            "detail": self.detail,
        }


class BadParameter(ApiError):
    """A parameter, or a key of the body, is not as declared."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(400, f"{name}: {detail}", parameter=name)


STATUSES: Final[tuple[tuple[type[errors.FanlightError], int], ...]] = (  # the first that fits
    (errors.AuthenticationFailed, 401),
    (errors.NotPermitted, 403),
    (errors.NoSuchQueue, 404),
    (errors.NoSuchSubscription, 404),
    (errors.InvalidTopic, 400),
    (errors.InvalidFilter, 400),
    (errors.InvalidSelector, 400),
    (errors.Unsupported, 400),
    (errors.ProtocolViolation, 400),
    (errors.StoreUnavailable, 503),
)


def problem_of(error: errors.FanlightError) -> ApiError:
    """What the core refuses, as a problem; what is in none of these classes is a matter of the state: 409."""
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), 409)
    return ApiError(status, error.text, **error.details)
