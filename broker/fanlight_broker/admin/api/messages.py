"""Publishing one message, and setting a retained one."""

import asyncio
import base64
import binascii
import json
from typing import Any, Final

from fanlight_broker.admin.api.declared import FLAG, WHOLE, Call, Operation, Parameter, shape
from fanlight_broker.admin.api.lists import NAMESPACE, SYNTAX
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import ApiError, BadParameter, problem_of
from fanlight_broker.admin.api.publisher import Publishers
from fanlight_broker.core.content import Content
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import HELD, Accepted, Direct, Refused
from fanlight_broker.core.topics import SYNTAXES, words_of
from fanlight_broker.wire.message import NEVER, Message
from fanlight_broker.wire.route import Route

HEADERS_MAX: Final = 100
PAYLOAD_MAX: Final = 256 * 1024  # characters, each of which takes up to 6 bytes of the body
PUBLISHED: Final = shape(subscribers=WHOLE, routed=FLAG)
ANY: Final = "no more than one of payload, payload_base64 and json"
CONTENT: Final = (
    Parameter("payload", str, f"the payload as text; {ANY}", most=PAYLOAD_MAX),
    Parameter("payload_base64", str, f"the payload in base64; {ANY}", most=PAYLOAD_MAX),
    Parameter("json", object, f"the payload as JSON, with that content type; {ANY}"),
    Parameter("qos", int, "0 or 1: subscribers may get it with this at most", 1, most=2),
    Parameter("expiry_seconds", float, "after which it is not delivered any more; null: never", least=0.001,
              most=2**32),
    Parameter("content_type", str, "what the payload is", least=1, most=1_024),
    Parameter("headers", dict, "names, and values that are text, numbers, true, false or null"),
)
TOPIC_KEY: Final = Parameter("topic", str, "the topic", required=True, least=1)


class MessageOperations:
    def __init__(self, operated: Operated, publishers: Publishers) -> None:
        self._operated, self._publishers = operated, publishers

    def operations(self) -> tuple[Operation, ...]:
        return (Operation(
            "POST", "/messages", "Publish one message", self.publish, PUBLISHED, (NAMESPACE,),
            body=(TOPIC_KEY, SYNTAX, *CONTENT, Parameter("retain", bool, "it is the topic's retained message from now "
                                                         "on", default=False)),
            action=Action.ADMIN_WRITE, absent=True, conflicts=True, tag="messages",
        ),)

    async def publish(self, call: Call) -> dict[str, Any]:
        topic, syntax = call.body["topic"].encode(), call.body["syntax"]
        return await self.send(call, topic, syntax, retain=call.body["retain"])

    async def send(self, call: Call, topic: bytes, syntax: str, *, retain: bool) -> dict[str, Any]:
        """Publish what the body says on this topic. Raises ApiError, FanlightError."""
        operated, home = self._operated, self._operated.home(call["namespace"])
        words_of(topic, syntax, home.limits)
        publisher = self._publishers.of(call, home)
        done: asyncio.Future[Accepted | Any] = asyncio.get_running_loop().create_future()
        with operated.acting() as now:
            message = self._message(call, topic, syntax, now, retain=retain)
            home.clients.check_size(
                len(topic) + len(message.payload), home.clients.quota_of(publisher.asker, None).least("message_bytes")
            )
            sender = Patient(operated.broker.ledger, message, None)
            outcome = home.publishing.accept(
                Publication(message, publisher), sender, now, lambda accepted: _tell(done, accepted)
            )
        if isinstance(outcome, Refused):
            raise problem_of(outcome.error)
        if outcome is HELD:
            raise ApiError(503, "no room for it now: a consumer, the archive or the store is behind; try again")
        accepted = await done
        if isinstance(accepted, Accepted) and not accepted.kept:
            raise ApiError(409, "the queues of this topic are full, and it was not kept; consume from them")
        return {
            "subscribers": accepted.routed, "routed": accepted.routed > 0,
            **({"delayed": True, "id": accepted.id} if accepted.delayed else {}),
        }

    def _message(self, call: Call, topic: bytes, syntax: str, now: float, *, retain: bool) -> Message:
        body = call.body
        payload, content_type = payload_of(body)
        content = Content(
            topic, SYNTAXES.index(syntax), payload, headers_of(body["headers"]),
            body["content_type"] or content_type, is_text=body["payload_base64"] is None or None,
            lifetime=None if body["expiry_seconds"] is None else round(1_000 * body["expiry_seconds"]),
        )
        said = self._operated.format.write(content)
        if said is None:
            raise ApiError(400, "this cannot be said in a message", parameter="headers")
        return Message(
            said.format, said.topic, said.syntax, said.payload, fields=said.fields, qos=body["qos"], retain=retain,
            expires_at=NEVER if body["expiry_seconds"] is None else now + body["expiry_seconds"],
            expiry_hole=said.expiry_hole, format_data=said.format_data,
        )


class Patient(Direct):
    """A message whose publisher may try again later."""

    patient = True

    def hold_back(self, blocker: Any) -> None:
        pass  # `accept` returns HELD

    def confirm(self, route: Route) -> bool:
        return False  # it is answered when it is stored

    def waits(self, route: Route) -> bool:
        return True


def _tell(done: "asyncio.Future[Any]", outcome: Any) -> None:
    if not done.done():  # the caller may have given up
        done.set_result(outcome)


def payload_of(body: dict[str, Any]) -> tuple[bytes, str | None]:
    """The payload, and its content type as far as that is known. Raises BadParameter."""
    given = [name for name in ("payload", "payload_base64", "json") if body[name] is not None]
    if len(given) > 1:
        raise BadParameter(given[1], ANY)
    if not given:
        return b"", None
    if given[0] == "json":
        return json.dumps(body["json"]).encode(), "application/json"
    if given[0] == "payload":
        return body["payload"].encode(), None
    try:
        return base64.b64decode(body["payload_base64"], validate=True), None
    except (ValueError, binascii.Error):
        raise BadParameter("payload_base64", "is no base64") from None


def headers_of(given: dict[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    """Raises BadParameter."""
    found = given or {}
    if len(found) > HEADERS_MAX:
        raise BadParameter("headers", f"{len(found)} headers; {HEADERS_MAX} at most")
    for name, value in found.items():
        small = not isinstance(value, int) or -(2**63) <= value < 2**63
        if name.startswith("$") or not small or not isinstance(value, str | int | float | bool | None):
            raise BadParameter(
                "headers", "names without $ at the beginning, and values that are text, numbers, true, false or null"
            )
        if any("\ud800" <= each <= "\udfff" for each in f"{name}{value}"):
            raise BadParameter("headers", "half of a surrogate pair, which no UTF-8 has")
    return tuple(found.items())
