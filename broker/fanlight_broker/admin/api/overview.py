"""Overview, and the views from before the API: topics, slow consumers, quotas, shares, archive, explain."""

from collections.abc import Generator, Mapping
from functools import partial
from typing import Any, Final

from fanlight_broker.admin.api.declared import (
    FLAG,
    MAP,
    NUMBER,
    TEXT,
    WHOLE,
    Call,
    Operation,
    Parameter,
    items,
    shape,
)
from fanlight_broker.admin.api.lists import LIMIT, NAMESPACE, SYNTAX
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import ApiError, BadParameter
from fanlight_broker.admin.bounded import bounded
from fanlight_broker.admin.inspection import fields_of
from fanlight_broker.admin.view import BadQuery
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.quota_views import HOLDER_KINDS, QUOTA_ORDERS, SORTED_MAX

EXPLAINED_MAX: Final = 1_000
ROWS: Final = Parameter("limit", int, "rows at most", LIMIT, least=1, most=EXPLAINED_MAX)
OVERVIEW: Final = shape(
    version=TEXT, uptime_seconds=NUMBER, ready=FLAG, draining=FLAG, unwell=items(TEXT), durability=TEXT,
    counters=MAP, gauges=MAP, drops=MAP, limits=items(shape(limit=TEXT, used=NUMBER, most=NUMBER)),
)


class OverviewOperations:
    """draining: has an operator, or a signal, told the broker to drain?"""

    def __init__(self, operated: Operated) -> None:
        self._operated = operated

    def operations(self) -> tuple[Operation, ...]:
        read = partial(Operation, "GET", action=Action.ADMIN_READ)
        return (
            read("/overview", "How the broker is, in one answer", self.overview, OVERVIEW),
            read("/stats", "All metrics, by their names", self.stats, MAP),
            read("/topics", "Topics with the most messages", self.topics, shape(items=items(shape(topic=TEXT))), (
                ROWS, Parameter("sort", str, "messages: in all; per_second: since the reading before", "messages",
                                choices=("messages", "per_second")),
            ), tag="topics"),
            read("/slow-consumers", "Clients that fall behind, and what the policy did", self.slow,
                 shape(items=items(shape(connection=WHOLE, client=TEXT, policy=TEXT, reason=TEXT))), (ROWS,),
                 tag="connections"),
            read("/shares", "What users and addresses hold of each pot, most first", self.shares,
                 shape(pots=MAP, principals=items(MAP), total=WHOLE), (ROWS,), tag="quotas"),
            read("/quotas", "Users and addresses: traffic, quotas, rates, how often held or refused", self.quotas,
                 shape(quotas=items(MAP), total=WHOLE), (
                     ROWS, Parameter("offset", int, "rows to skip", 0, most=SORTED_MAX - EXPLAINED_MAX),
                     Parameter("by", str, "the order", QUOTA_ORDERS[0], choices=QUOTA_ORDERS),
                     Parameter("principal", str, "only this one"), Parameter("quota", str, "only with this entry"),
                     Parameter("per", str, "holders of this kind", HOLDER_KINDS[0], choices=HOLDER_KINDS),
                 ), tag="quotas"),
            read("/archive", "The archive: offsets, sizes, and what is wrong with it", self.archive, MAP, absent=True,
                 tag="archive"),
            read("/explain", "Who gets a topic and why; with `client`, why that one does not", self.explain,
                 shape(topic=TEXT, syntax=TEXT, total=WHOLE, matches=items(MAP)), (
                     Parameter("topic", str, "the topic", required=True, least=1), SYNTAX,
                     Parameter("fields", str, "fields of a message, as a JSON object"),
                     Parameter("client", str, "name or connection number of a client"), ROWS, NAMESPACE,
                     Parameter("near", int, "how many to show that it nearly reaches", 0, most=100),
                 ), tag="topics"),
            read("/namespaces", "Namespaces, and what is in them", self.namespaces,
                 shape(items=items(shape(namespace=TEXT, connections=WHOLE))), (ROWS,)),
        )

    def overview(self, call: Call) -> dict[str, Any]:
        operated, inspection = self._operated, self._operated.inspection
        counters, gauges = dict(inspection.counters()), dict(inspection.gauges())
        return {
            "version": operated.version, "uptime_seconds": round(gauges["uptime_seconds"], 3),
            "ready": inspection.ready, "draining": operated.draining(), "unwell": list(inspection.unwell()),
            "durability": inspection.durability, "counters": counters, "gauges": gauges,
            "drops": {name: count for name, count in counters.items() if name.startswith("dropped_")},
            "limits": self.limits(gauges),
        }

    def limits(self, gauges: Mapping[str, float]) -> list[dict[str, Any]]:
        """What is bounded in all, and how much of it is used; the fullest first."""
        found = [
            {"limit": limit, "used": used, "most": most}
            for limit, used, most in bounded(gauges, self._operated.broker.limits)
        ]
        return sorted(found, key=lambda each: each["used"] / max(each["most"], 1), reverse=True)

    def stats(self, call: Call) -> dict[str, Any]:
        stats: dict[str, Any] = {"version": self._operated.version}
        for part in self._operated.sources:
            stats |= part.counters()
            stats |= part.gauges()
            stats |= part.reasons()
        return stats

    def topics(self, call: Call) -> dict[str, Any]:
        by_rate = call["sort"] == "per_second"
        return {"items": list(self._operated.inspection.hot_topics(limit=call["limit"], by_rate=by_rate))}

    def slow(self, call: Call) -> Generator[None, None, dict[str, Any]]:
        found = yield from self._operated.inspection.slow_consumers(limit=call["limit"])
        return {"items": list(found)}

    def shares(self, call: Call) -> dict[str, Any]:
        return self._operated.inspection.shares(limit=call["limit"])

    def quotas(self, call: Call) -> Generator[None, None, dict[str, Any]]:
        found = yield from self._operated.inspection.quotas(
            offset=call["offset"], limit=call["limit"], by=call["by"], principal=call["principal"],
            entry=call["quota"], per=call["per"],
        )
        return dict(found)

    def archive(self, call: Call) -> dict[str, Any]:
        archive = self._operated.inspection.archive()
        if archive is None:
            raise ApiError(404, "no archive; it is turned on by --archive")
        return archive

    def explain(self, call: Call) -> Generator[None, None, dict[str, Any]]:
        try:
            fields = fields_of(call.parameters) if call["fields"] is not None else None
        except BadQuery as error:
            raise BadParameter("fields", error.text) from None
        self._operated.home(call["namespace"])
        found = yield from self._operated.inspection.explain(
            call["topic"], syntax=call["syntax"], client=call["client"] or None, limit=call["limit"], fields=fields,
            namespace=call["namespace"] or "", near=call["near"],
        )
        return dict(found)

    def namespaces(self, call: Call) -> dict[str, Any]:
        homes = self._operated.broker.everywhere()
        return {"total": len(homes), "items": [
            {
                "namespace": home.name, "connections": len(home.clients), "sessions": len(home.sessions),
                "subscriptions": len(home.router), "queues": len(home.queues), "retained": len(home.retained),
                "delayed": len(home.delayed),
            } for home in homes[: call["limit"]]
        ]}
