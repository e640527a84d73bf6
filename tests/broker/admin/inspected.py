"""A small broker to look at: a few clients and subscriptions in lists, behind `ports.Inspection`."""

from collections.abc import Generator, Mapping, Sequence
from typing import Any

View = dict[str, Any]


class Inspected:
    """As the core's views, over plain lists that a test fills."""

    def __init__(self, clients: int = 3, subscriptions: int = 5) -> None:
        self.ready = True
        self.unwell_parts: list[str] = []
        self.archived: View | None = None
        self.clients: list[View] = [{"connection": each, "client": f"client{each}"} for each in range(clients)]
        self.rows: list[View] = [{"subscription": each, "filter": "stock.#"} for each in range(subscriptions)]
        self.hot: list[View] = [{"topic": "stock.\ud800", "syntax": "amqp", "messages": 9, "subscribers": 2}]
        self.slow: list[View] = [{"connection": 1, "client": "client1", "policy": "pause", "outbox_bytes": 7}]
        self.asked: object = None

    def counters(self) -> Mapping[str, int]:
        return {"messages_in": 41, "messages_out": 42}

    def gauges(self) -> Mapping[str, float]:
        lists = {"connections": len(self.clients), "subscriptions": len(self.rows), "sessions": 2, "marks": 2,
                 "queues": 1, "delayed_messages": 1}
        return {**lists, "uptime_seconds": 1.5}

    def reasons(self) -> Mapping[str, Mapping[str, int]]:
        return {"refusals": {"banned": 2, "server_busy": 1}}

    def connections(self, *, offset: int, limit: int) -> Sequence[View]:
        return self.clients[offset : offset + limit]

    def subscriptions(self, *, offset: int, limit: int) -> Sequence[View]:
        return self.rows[offset : offset + limit]

    def snapshot(self, *, place: int, places: int) -> tuple[Sequence[View], int | None]:
        end = place + places
        return self.rows[place:end], end if end < len(self.rows) else None

    def sessions(self, *, offset: int, limit: int) -> Sequence[View]:
        return [{"client": "away", "queued": 3}, {"client": "there", "queued": 0}][offset : offset + limit]

    def queues(self, *, offset: int, limit: int) -> Sequence[View]:
        return [{"queue": "billing", "waiting": 3}][offset : offset + limit]

    def delayed(self, *, offset: int, limit: int) -> Sequence[View]:
        return [{"topic": "later", "due_seconds": 60.0}][offset : offset + limit]

    def marks(self, *, offset: int, limit: int) -> Sequence[View]:
        rows = [{"user": "anna", "producer": f"q.{number}", "batch": 1, "sequence": 2**64 - 1} for number in range(2)]
        return rows[offset : offset + limit]

    durability = "in memory only"

    def unwell(self) -> Sequence[str]:
        return self.unwell_parts

    def archive(self) -> View | None:
        return self.archived

    def shares(self, *, limit: int) -> View:
        return {"principals": [{"principal": "user anna"}, {"principal": "user bert"}][:limit], "total": 2}

    def quotas(
        self, *, offset: int, limit: int, by: str, principal: str | None, entry: str | None, per: str
    ) -> Generator[None, None, View]:
        self.asked = (offset, limit, by, principal, entry, per)
        yield
        return {"quotas": [{"principal": "user anna"}], "by": by, "total": 1}

    def hot_topics(self, *, limit: int, by_rate: bool = False) -> Sequence[View]:
        return self.hot[:limit]

    def slow_consumers(self, *, limit: int) -> Generator[None, None, Sequence[View]]:
        yield
        return self.slow[:limit]

    def explain(
        self, topic: str, *, syntax: str, client: str | None, limit: int, fields: Mapping[str, Any] | None = None,
        namespace: str = "", near: int = 0,
    ) -> Generator[None, None, View]:
        if syntax not in ("amqp", "mqtt"):
            raise ValueError(f"syntax {syntax!r} is neither amqp nor mqtt")
        self.asked = (topic, syntax, client, limit, fields)
        yield
        return {"topic": topic, "matches": []}
