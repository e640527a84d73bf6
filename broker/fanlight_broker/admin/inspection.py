"""The paths of the HTTP listener: each a function from a query to a JSON object.

Nothing here changes the broker. Every answer is bounded to a page of at most ROWS_MAX rows; longer ones are streamed
(snapshot.py).
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.view import (
    OFFSET_MAX,
    ROWS_MAX,
    Answer,
    BadQuery,
    PartView,
    Query,
    Steps,
    choice_of,
    limit_of,
    number_of,
)
from fanlight_broker.core.ports import Inspection
from fanlight_broker.core.quota_views import HOLDER_KINDS, QUOTA_ORDERS, SORTED_MAX


@dataclass(frozen=True, slots=True)
class Path:
    """One path: what it shows, which parameters it takes, and the function that answers."""

    summary: str
    answer: Callable[["InspectionApi", Query], Answer | Steps | Awaitable[Answer]]
    parameters: tuple[str, ...] = ()
    streams: bool = False  # format=jsonl has all rows, see `place_asked`


class InspectionApi:
    """Answers queries about one broker. views: what parts show of themselves, by their paths."""

    def __init__(
        self, inspection: Inspection, sources: Sequence[MetricSource], version: str,
        views: Mapping[str, PartView] = MappingProxyType({}),
    ) -> None:
        self._inspection = inspection
        self._sources = tuple(sources)
        self._version = version
        self._views = views

    def index(self, _: Query) -> Answer:
        return 200, {"fanlight": self._version, "paths": {path: each.summary for path, each in PATHS.items()}}

    def healthz(self, _: Query) -> Answer:
        # Still 200: a supervisor would restart the broker, which would stop the routing and not repair the disk.
        if unwell := self._inspection.unwell():
            return 200, {"status": "degraded", "unwell": list(unwell)}
        return 200, {"status": "ok"}

    def readyz(self, _: Query, *, details: bool = False) -> Answer:
        more: dict[str, Any] = {}
        if details:
            inspection = self._inspection
            more = {
                "version": self._version, "unwell": list(inspection.unwell()), "durability": inspection.durability,
            }
        if self._inspection.ready:
            return 200, {"status": "ready", **more}
        text = "not accepting clients: starting or draining; ask again, or connect elsewhere"
        return 503, {"error": text, **more}

    def stats(self, _: Query) -> Answer:
        stats: dict[str, Any] = {"version": self._version}
        for part in self._sources:
            stats |= part.counters()
            stats |= part.gauges()
            stats |= part.reasons()
        return 200, stats

    def connections(self, query: Query) -> Answer:
        return self._page("connections", self._inspection.connections, query)

    def subscriptions(self, query: Query) -> Answer:
        return self._page("subscriptions", self._inspection.subscriptions, query)

    def sessions(self, query: Query) -> Answer:
        return self._page("sessions", self._inspection.sessions, query)

    def queues(self, query: Query) -> Answer:
        return self._page("queues", self._inspection.queues, query)

    def delayed(self, query: Query) -> Answer:
        return self._page("delayed", self._inspection.delayed, query, total="delayed_messages")

    def marks(self, query: Query) -> Answer:
        return self._page("marks", self._inspection.marks, query)

    def shares(self, query: Query) -> Answer:
        return 200, self._inspection.shares(limit=limit_of(query))

    def _page(
        self, name: str, rows: Callable[..., Sequence[dict[str, Any]]], query: Query, total: str | None = None
    ) -> Answer:
        """total: the gauge that counts them, if it has another name."""
        limit, offset = limit_of(query), number_of(query, "offset", 0, 0, OFFSET_MAX)
        page = list(rows(offset=offset, limit=limit))
        count = int(self._inspection.gauges()[total or name])
        return 200, {name: page, "offset": offset, "limit": limit, "total": count}

    def archive(self, _: Query) -> Answer:
        archive = self._inspection.archive()
        return (200, archive) if archive is not None else (404, {"error": "no archive; it is turned on by --archive"})

    def permissions(self, query: Query) -> Answer | Steps | Awaitable[Answer]:
        if (view := self._views.get("/permissions")) is None:
            return 404, {"error": "no permissions are set: see the setting permissions"}
        return view(query)

    def definitions(self, query: Query) -> Answer | Steps | Awaitable[Answer]:
        limit, offset = limit_of(query), number_of(query, "offset", 0, 0, OFFSET_MAX)
        if (view := self._views.get("/definitions")) is None:
            return 404, {"error": "AMQP is turned off: see the setting amqp"}
        return view({"limit": str(limit), "offset": str(offset)})

    def bridges(self, query: Query) -> Answer | Steps | Awaitable[Answer]:
        if (view := self._views.get("/bridges")) is None:
            return 404, {"error": "no bridges are set: see the setting bridges"}
        return view(query)

    def quotas(self, query: Query) -> Steps:
        limit, order = limit_of(query), choice_of(query, "by", QUOTA_ORDERS, QUOTA_ORDERS[0])
        offset = number_of(query, "offset", 0, 0, SORTED_MAX - limit)
        found = yield from self._inspection.quotas(
            offset=offset, limit=limit, by=order, principal=query.get("principal"), entry=query.get("quota"),
            per=choice_of(query, "per", HOLDER_KINDS, HOLDER_KINDS[0]),
        )
        return 200, dict(found)

    def history(self, query: Query) -> Answer | Steps | Awaitable[Answer]:
        view = self._views.get("/history")
        return view(query) if view is not None else (404, {"error": "no history is kept"})

    def settings(self, query: Query) -> Answer | Steps | Awaitable[Answer]:
        view = self._views.get("/settings")
        return view(query) if view is not None else (404, {"error": "no settings are shown"})

    def topics(self, query: Query) -> Answer:
        order = query.get("by", "messages")
        if order not in ("messages", "rate"):
            raise BadQuery(f"by={order[:40]} must be messages (in all) or rate (a second, since the reading before)")
        return 200, {"topics": list(self._inspection.hot_topics(limit=limit_of(query), by_rate=order == "rate"))}

    def slow_consumers(self, query: Query) -> Steps:
        found = yield from self._inspection.slow_consumers(limit=limit_of(query))
        return 200, {"slow_consumers": list(found)}

    def explain(self, query: Query) -> Steps:
        if "topic" not in query:
            raise BadQuery("say which topic: /explain?topic=stock.nasdaq.AAPL; slashes and # as %2F and %23")
        syntax, client = query.get("syntax", "amqp"), query.get("client") or None
        try:
            explained = yield from self._inspection.explain(
                query["topic"], syntax=syntax, client=client, limit=limit_of(query), fields=fields_of(query),
                namespace=query.get("namespace", ""), near=number_of(query, "near", 0, 0, 100),
            )
        except ValueError as error:
            raise BadQuery(str(error)) from error
        return 200, dict(explained)


def fields_of(query: Query) -> dict[str, Any] | None:
    """The fields of a message, by the names that selectors have for them; None: they are not given."""
    if "fields" not in query:
        return None
    try:
        fields = json.loads(query["fields"])
    except (ValueError, RecursionError) as error:
        raise BadQuery(f"fields is no JSON: {error}") from error
    if not isinstance(fields, dict):
        raise BadQuery('fields must be a JSON object: {"price": 80, "payload.order.urgent": true}')
    return fields


def place_asked(query: Query) -> int | None:
    """The id from which JSON lines are streamed; None for a page. Raises BadQuery."""
    form = query.get("format", "json")
    if form not in ("json", "jsonl"):
        raise BadQuery(f"format={form[:40]} is unknown: use json (a page, by limit and offset) or jsonl (all, by from)")
    others = ("limit", "offset") if form == "jsonl" else ("from",)
    if unfit := [name for name in others if name in query]:
        raise BadQuery(f"format={form} takes no {unfit[0]}: limit and offset are of json, from is of jsonl")
    return number_of(query, "from", 0, 0, OFFSET_MAX) if form == "jsonl" else None


PAGE: Final = ("limit", "offset")
ASKER: Final = ("user", "group", "client", "certificate", "address", "protocol", "listener")
METRICS: Final = "/metrics"  # the one answer that is not JSON: see http.py

PATHS: Final[Mapping[str, Path]] = {
    "/": Path("this list", InspectionApi.index),
    "/healthz": Path("the process is alive; needs no credentials", InspectionApi.healthz),
    "/readyz": Path(
        "200 while the broker accepts clients, 503 while it starts or drains; needs no credentials",
        InspectionApi.readyz,
    ),
    METRICS: Path("all metrics, for Prometheus; has a token of its own: metrics_token_file", InspectionApi.stats),
    "/stats": Path("all metrics, as JSON", InspectionApi.stats),
    "/history": Path(
        "some metrics of the last hour, a sample each 5 s; after (the number of a sample: only newer ones)",
        InspectionApi.history,
        ("after",),
    ),
    "/settings": Path("settings in force: value, where it came from, what needs a restart", InspectionApi.settings),
    "/connections": Path(f"connections; limit (to {ROWS_MAX}), offset", InspectionApi.connections, PAGE),
    "/subscriptions": Path(
        f"subscriptions; limit (to {ROWS_MAX}), offset; or all of them with format=jsonl, from (an id)",
        InspectionApi.subscriptions,
        (*PAGE, "format", "from"),
        streams=True,
    ),
    "/sessions": Path(f"sessions and what waits for them; limit (to {ROWS_MAX}), offset", InspectionApi.sessions, PAGE),
    "/queues": Path(
        f"named queues, their consumers and what waits; limit (to {ROWS_MAX}), offset", InspectionApi.queues, PAGE
    ),
    "/delayed": Path(
        f"delayed messages, in the order of their times; limit (to {ROWS_MAX}), offset", InspectionApi.delayed, PAGE
    ),
    "/marks": Path(f"how far producers have got; limit (to {ROWS_MAX}), offset", InspectionApi.marks, PAGE),
    "/shares": Path("what users and addresses hold of each pot, most first; limit", InspectionApi.shares, ("limit",)),
    "/quotas": Path(
        "users and addresses: traffic, quotas, rates, how often held or refused; limit, offset, by (one of "
        f"{', '.join(QUOTA_ORDERS)}), principal, quota; per=group, client or address: these instead",
        InspectionApi.quotas,
        (*PAGE, "by", "principal", "quota", "per"),
    ),
    "/permissions": Path(
        f"rules of permissions and how often each decided; limit (to {ROWS_MAX}), offset, effect, rule, used; with "
        "shadowed=true those that can never decide; or what "
        "they decide, and why: action, topic, fields, and user, group, client, certificate, address, protocol, "
        "listener, or connection",
        InspectionApi.permissions,
        (*PAGE, "effect", "rule", "used", "shadowed", "action", "topic", "fields", "connection", *ASKER),
    ),
    "/definitions": Path(
        "AMQP's vhosts, policies, exchanges, queues and bindings, as objects of RabbitMQ's file; "
        f"limit (to {ROWS_MAX}), offset",
        InspectionApi.definitions,
        PAGE,
    ),
    "/bridges": Path(
        f"bridges to other brokers: state, what waits, what passed; limit (to {ROWS_MAX}), offset",
        InspectionApi.bridges,
        PAGE,
    ),
    "/topics": Path(
        "topics with the most messages; limit, by (messages: in all; rate: a second, since the reading before)",
        InspectionApi.topics,
        ("limit", "by"),
    ),
    "/slow-consumers": Path("clients that fall behind; limit", InspectionApi.slow_consumers, ("limit",)),
    "/archive": Path("the archive: offsets, sizes, and what is wrong with it", InspectionApi.archive),
    "/explain": Path(
        "which subscriptions a topic reaches and why; topic, syntax (amqp, mqtt), fields (JSON object), client, limit, "
        "namespace, near (how many to show that it nearly reaches)",
        InspectionApi.explain,
        ("topic", "syntax", "fields", "client", "limit", "namespace", "near"),
    ),
}
