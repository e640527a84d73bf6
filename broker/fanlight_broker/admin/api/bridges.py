"""Bridges to other brokers: how each is, and pausing, resuming or making its link anew."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from fanlight_broker.admin.api.declared import FLAG, MAP, NUMBER, TEXT, WHOLE, Call, Operation, Parameter, items, shape
from fanlight_broker.admin.api.lists import Id, Listing, page_of
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import ApiError
from fanlight_broker.admin.api.shown import href
from fanlight_broker.core.permissions import Action

NAME: Final = Parameter("name", str, "name of the bridge", least=1, most=64)
MISSING: Final = "there are no bridges: see the setting bridges"
COUNTS: Final = shape(messages=WHOLE)
BRIDGE: Final = shape(
    name=TEXT, state=TEXT, reason=TEXT, since=NUMBER, address=TEXT, version=TEXT, tls=FLAG, user=TEXT, client=TEXT,
    waiting=WHOLE, waiting_max=WHOLE, connects=WHOLE, failures=WHOLE, routes=items(MAP), refused_filters=MAP,
    href=TEXT, **{"out": COUNTS, "in": COUNTS},
)
Row = tuple[str, Any]  # its name, and its link


class BridgeOperations:
    def __init__(self, operated: Operated) -> None:
        self._operated = operated
        self.listing: Listing[Row] = Listing(
            rows=self._rows, count=lambda: len(self._links()), id=lambda row: (row[0],), view=_view,
            keys={
                "name": lambda row: row[0], "state": lambda row: row[1].status.state.value,
                "address": lambda row: row[1].status.address, "waiting": lambda row: row[1].status.waiting,
                "failures": lambda row: row[1].status.failures,
            },
            searched=("name", "address"), exact=("name", "state"),
        )

    def operations(self) -> tuple[Operation, ...]:
        make = partial(Operation, tag="bridges")
        read = partial(make, "GET", action=Action.ADMIN_READ)
        write = partial(make, "POST", answer=BRIDGE, parameters=(NAME,), action=Action.ADMIN_WRITE, absent=True)
        return (
            read("/bridges", "Bridges to other brokers: state, what waits, what passed", self.listing.page,
                 page_of(BRIDGE), self.listing.parameters()),
            read("/bridges/{name}", "One bridge", self.show, BRIDGE, (NAME,), absent=True),
            write("/bridges/{name}/pause", "Close its link until it is resumed; what it would send waits",
                  partial(self._change, "pause")),
            write("/bridges/{name}/resume", "Make its link again, after a pause", partial(self._change, "resume")),
            write("/bridges/{name}/reconnect", "Close its link and make it anew, at once and without a back-off",
                  partial(self._change, "reconnect"), conflicts=True),
        )

    def _links(self) -> Mapping[str, Any]:
        links: Mapping[str, Any] = self._operated.action("bridges", MISSING)()
        return links

    def _rows(self, after: Id | None) -> Iterable[Row]:
        return sorted(self._links().items())

    def _find(self, call: Call) -> Row:
        link = self._links().get(call["name"])
        if link is None:
            raise ApiError(404, f"there is no bridge {call['name']!r}")
        return call["name"], link

    def show(self, call: Call) -> dict[str, Any]:
        return _view(self._find(call))

    async def _change(self, verb: str, call: Call) -> dict[str, Any]:
        name, _ = self._find(call)
        try:
            link = await self._operated.action("change_bridge", MISSING)(verb, name)
        except KeyError:  # a reload has removed it meanwhile
            raise ApiError(404, f"there is no bridge {name!r}") from None
        return _view((name, link))


def _view(row: Row) -> dict[str, Any]:
    name, link = row
    return {**link.view(), "href": href("bridges", name)}
