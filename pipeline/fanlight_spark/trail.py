"""What the audit topics of an archive say: which subscriptions there were, from which offset to which.

    Trail.of(messages)    of those below $audit (docs/archive.md#who-got-it)

A subscription is there from the offset of its `subscribe` to that of its `unsubscribe`, or of what ended all of its
kind: the `disconnect` of a connection whose client has no session, the next `started`. One of a session or a queue that
a restart kept is announced again, and is there from that `started` on.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fanlight_permissions.topics import namespace_prefix

ROOT: Final = "$audit/"
FILTER: Final = ("$audit/#", "mqtt")
END: Final = 2**63 - 1  # an offset behind all others
QUEUE: Final = "queue"  # the protocol of a named queue's filters


class TrailError(ValueError):
    """An audit message that cannot be read: its offset, and why."""


@dataclass(slots=True)
class Subscribed:
    """One subscription while it was in force: of messages with begin < offset < end."""

    begin: int
    client: str
    user: str
    protocol: str
    filter: str
    syntax: str
    namespace: str = ""
    connection: int | None = None
    group: str | None = None
    qos: int = 0
    no_echo: bool = False
    session: bool = False
    where: str | None = None
    partly: bool = False
    end: int = END
    assumed: bool = False  # its beginning is before the trail
    dropped: int | None = None  # messages, as the broker said at its end

    @property
    def archived_filter(self) -> str:
        """Its filter for topics as an archive has them: below the namespace."""
        before = namespace_prefix(self.namespace, self.syntax).decode() if self.namespace else ""
        return before + self.filter


@dataclass(slots=True)
class Trail:
    """subscriptions: in the order in which they began. presence: of each (namespace, client), from and to which
    offsets it was connected. first: the offset from which it is known; None: there is no audit message.
    """

    subscriptions: list[Subscribed] = field(default_factory=list)
    presence: dict[tuple[str, str], list[tuple[int, int]]] = field(default_factory=dict)
    first: int | None = None
    lost: int = 0  # audit messages that the broker could not publish

    @classmethod
    def of(cls, said: Iterable[tuple[int, str, Mapping[str, Any]]]) -> "Trail":
        """Of (offset, kind, what it says), ascending."""
        reader = _TrailReader()
        for offset, kind, row in said:
            try:
                reader.take(offset, kind, row)
            except (KeyError, TypeError) as error:
                raise TrailError(f"the audit message at offset {offset}, {kind}: {error!r}") from error
        return reader.finish()

    def present(self, namespace: str, client: str, offset: int) -> bool:
        """Was a client connected when the message at this offset passed?"""
        return any(begin < offset < end for begin, end in self.presence.get((namespace, client), ()))


def said_by(rows: Iterable[tuple[int, str, bytes]]) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """For `Trail.of`: of (offset, topic, value). Raises TrailError for what is no JSON object."""
    for offset, topic, value in rows:
        try:
            said = json.loads(value)
        except ValueError as error:
            raise TrailError(f"the audit message at offset {offset} is no JSON: {error}") from error
        if not isinstance(said, dict):
            raise TrailError(f"the audit message at offset {offset} is no JSON object")
        yield offset, topic.removeprefix(ROOT), said


class _TrailReader:
    def __init__(self) -> None:
        self.trail = Trail()
        self._open: dict[tuple[str, int], Subscribed] = {}  # by namespace and id
        self._of_connection: dict[int, list[Subscribed]] = {}
        self._connected: dict[int, tuple[str, str, int]] = {}  # namespace, client, since
        self._started = -1  # the offset of the last start: what is announced as restored was there from there on

    def take(self, offset: int, kind: str, row: Mapping[str, Any]) -> None:
        if self.trail.first is None:
            self.trail.first = self._started = offset
        if kind == "started":
            self._everything_ends(offset)
            self._started = offset
        elif kind == "subscribe":
            self._subscribe(offset, row)
        elif kind == "unsubscribe":
            self._unsubscribe(offset, row)
        elif kind == "connect":
            self._connected[row["connection"]] = (row.get("namespace", ""), row["client"], offset)
        elif kind == "disconnect":
            self._disconnect(offset, row["connection"], row["client"])
        elif kind == "lost":
            self.trail.lost += row["count"]

    def finish(self) -> Trail:
        for namespace, client, since in self._connected.values():
            self.trail.presence.setdefault((namespace, client), []).append((since, END))
        self.trail.subscriptions.sort(key=lambda each: each.begin)
        return self.trail

    def _subscribe(self, offset: int, row: Mapping[str, Any]) -> None:
        begin = self._started if row.get("restored") else offset
        made = _subscribed(begin, row)
        key = (made.namespace, row["id"])
        before = self._open.get(key)
        if before is not None:  # it goes on with other options
            before.end = offset
        self._open[key] = made
        self._add(made)

    def _unsubscribe(self, offset: int, row: Mapping[str, Any]) -> None:
        found = self._open.pop((row.get("namespace", ""), row["id"]), None)
        if found is None:
            found = _subscribed(self._started, row)
            found.assumed = True
            self.trail.subscriptions.append(found)
        found.end = min(found.end, offset)
        found.dropped = row.get("dropped")

    def _add(self, made: Subscribed) -> None:
        self.trail.subscriptions.append(made)
        if not made.session and made.connection is not None:
            self._of_connection.setdefault(made.connection, []).append(made)

    def _disconnect(self, offset: int, connection: int, client: str) -> None:
        namespace, name, since = self._connected.pop(connection, ("", client, self._started))
        self.trail.presence.setdefault((namespace, name), []).append((since, offset))
        for each in self._of_connection.pop(connection, ()):
            each.end = min(each.end, offset)  # its `unsubscribe` may come some turns later

    def _everything_ends(self, offset: int) -> None:
        for each in self._open.values():
            each.end = min(each.end, offset)
        for namespace, client, since in self._connected.values():
            self.trail.presence.setdefault((namespace, client), []).append((since, offset))
        self._open.clear()
        self._of_connection.clear()
        self._connected.clear()


def _subscribed(begin: int, row: Mapping[str, Any]) -> Subscribed:
    return Subscribed(
        begin, row["client"], row["user"], row["protocol"], row["filter"], row["syntax"], row.get("namespace", ""),
        row["connection"], row["group"], row["qos"], row["no_echo"], row["session"], row.get("where"),
        bool(row["partly"]),
    )
