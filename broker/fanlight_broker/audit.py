"""Audit: who came in, who was refused and why, and who changed what. As event_log.py; auditing.py sets the sink.

    audit.note("permission_refused", user="alice", address="192.0.2.7", action="publish", topic="a/b", rule="line 3")

A note is one JSON object of a line, with `time` and `kind` before the given keys. Without a sink it costs one call.
It may be called from any thread and never waits. What a key such as `password` has is left out; no other key may have
a secret.
"""

from typing import Any, Final, Protocol

# The kinds, and what each means. Add one here before it is noted.
KINDS: Final = {
    "started": "a broker has begun to serve",
    "stopped": "it has ended",
    "login": "a client was let in",
    "login_refused": "a client, or an HTTP request, was not let in: reason",
    "connection_ended": "the broker has ended a connection: its credentials are not valid any more, or have expired",
    "reloaded": "settings and the files that they name were read again: applied",
    "reload_failed": "they were not, and nothing has changed: reason",
    "permission_refused": "a client may not do what it asked for: action, topic, rule",
    "permissions_changed": "other permissions are in force",
    "admin": "somebody has changed the state of the broker: action",
    "lost": "notes before this one could not be written: count",
}


class AuditSink(Protocol):
    """Takes notes, from any thread, and never waits."""

    def note(self, kind: str, keys: dict[str, Any]) -> None: ...

    def hears(self, kind: str) -> bool:
        """Does it do anything with notes of this kind?"""
        ...


def is_heard(kind: str) -> bool:
    """Would a note of this kind go anywhere? For what comes with each login, and is work to put together."""
    return _sink is not None and _sink.hears(kind)


def note(kind: str, /, **keys: Any) -> None:
    """Take a note of a kind that is in KINDS."""
    if _sink is not None:
        _sink.note(kind, keys)


def use(sink: AuditSink | None) -> AuditSink | None:
    """Set the sink, None for none. Returns the one that was in use."""
    global _sink
    before, _sink = _sink, sink
    return before


_sink: AuditSink | None = None
