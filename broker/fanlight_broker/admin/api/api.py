"""The API, put together: all operations, their index and their document."""

from collections.abc import Callable
from functools import partial
from typing import Any

from aiohttp import web

from fanlight_broker.admin.api.archive import ArchiveOperations
from fanlight_broker.admin.api.bridges import BridgeOperations
from fanlight_broker.admin.api.connections import Connections
from fanlight_broker.admin.api.deciding import DecidingOperations
from fanlight_broker.admin.api.declared import MAP, TEXT, Call, Operation, items, shape
from fanlight_broker.admin.api.dispatch import BASE, Dispatch
from fanlight_broker.admin.api.events import EventOperations
from fanlight_broker.admin.api.importing import ImportOperations
from fanlight_broker.admin.api.login_operations import LoginOperations
from fanlight_broker.admin.api.logins import Logins
from fanlight_broker.admin.api.messages import MessageOperations
from fanlight_broker.admin.api.openapi import document
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.overview import OverviewOperations
from fanlight_broker.admin.api.publisher import Publishers
from fanlight_broker.admin.api.queues import QueueOperations
from fanlight_broker.admin.api.retained import RetainedOperations
from fanlight_broker.admin.api.running import RunningOperations
from fanlight_broker.admin.api.sessions import SessionOperations
from fanlight_broker.admin.api.subscriptions import SubscriptionOperations
from fanlight_broker.admin.api.topics import TopicOperations
from fanlight_broker.admin.api.users import UserOperations
from fanlight_broker.admin.gatekeeper import Gatekeeper
from fanlight_broker.core.permissions import Action


class Api:
    """login_required: has a client to show credentials? headers: of every answer; seconds: how long a connection lives
    """

    def __init__(
        self, operated: Operated, gatekeeper: Gatekeeper, *, local: Callable[[bool], bool], headers: dict[str, str],
        login_required: Callable[[], bool], seconds: float = 60.0,
    ) -> None:
        self.operated = operated
        self.logins = Logins(gatekeeper.stands, operated.clock)
        publishers = Publishers(gatekeeper, operated.format)
        messages = MessageOperations(operated, publishers)
        self.overview = OverviewOperations(operated)
        subscriptions = SubscriptionOperations(operated)
        self.stop = subscriptions.redundancy.stop  # of what goes on after an answer
        self._operations = (
            *self._own(),
            *LoginOperations(gatekeeper, self.logins, login_required=login_required).operations(),
            *self.overview.operations(),
            *Connections(operated).operations(),
            *SessionOperations(operated, publishers).operations(),
            *subscriptions.operations(),
            *RetainedOperations(operated, messages, publishers).operations(),
            *QueueOperations(operated, publishers).operations(),
            *messages.operations(),
            *TopicOperations(operated, publishers).operations(),
            *ArchiveOperations(operated).operations(),
            *UserOperations(operated).operations(),
            *DecidingOperations(operated).operations(),
            *BridgeOperations(operated).operations(),
            *RunningOperations(operated).operations(),
            *ImportOperations(operated, headers).operations(),
            *(
                EventOperations(operated.feed, seconds, headers, gatekeeper).operations()
                if operated.feed is not None else ()
            ),
        )
        self._document: dict[str, Any] | None = None
        self._dispatch = Dispatch(self._operations, gatekeeper, self.logins, operated.slices, local, headers)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to a request below /api/v1, whatever fails."""
        return await self._dispatch.handle(request)

    def _own(self) -> tuple[Operation, ...]:
        read = partial(Operation, "GET", action=Action.ADMIN_READ)
        return (
            read("/", "Version, and all operations", self.index, shape(version=TEXT, operations=items(shape(
                method=TEXT, path=TEXT, summary=TEXT,
            )))),
            read("/openapi.json", "The OpenAPI 3.1 document", self.openapi, MAP),
        )

    def index(self, call: Call) -> dict[str, Any]:
        return {"version": self.operated.version, "operations": [
            {
                "method": each.method, "path": f"{BASE}{each.path}".rstrip("/"), "summary": each.summary,
                "permission": each.action.value if each.action is not None else None,
            } for each in self._operations
        ]}

    def openapi(self, call: Call) -> dict[str, Any]:
        if self._document is None:
            self._document = document(self._operations, self.operated.version, BASE)
        return self._document
