"""Who gets what part of a message, of the subscriptions of a snapshot, as the broker does it.

    a queue group       one of its members gets a message: each is given its share of it, 1/n
    an MQTT session     gets one copy, however many of its filters match: each of them is given its share
    any other           a subscription gets its own copy
    no echo             nothing of its own client's (known by the client's name)

So the shares of a message are as many as the copies that a broker sends. What slow consumers lose, who was away, and
what permissions forbid is not in an archive, and not here.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import matchcore
from fanlight_spark.snapshot import Snapshot, Subscription
from fanlight_spark.topics import index_of, match_rows


@dataclass(frozen=True, slots=True)
class Terms:
    """A snapshot as it is asked for shares: what workers get."""

    index: matchcore.FrozenIndex
    unit: NDArray[np.int64]  # of each subscription: those of one unit share a copy
    no_echo: NDArray[np.bool_]
    clients: tuple[str, ...]  # of each, if any has no echo


def terms_of(snapshot: Snapshot) -> Terms:
    """Raises matchcore.InvalidFilter; ValueError of selectors: shares are counted by topics, which cannot answer."""
    if snapshot.selectors:
        raise ValueError(
            f"{snapshot.selectors} of the snapshot's subscriptions have a selector (where), and are matched message by "
            "message: match_topics(messages, snapshot.filters(), fields=[...]); or leave them out of the file"
        )
    units: dict[tuple[Any, ...], int] = {}
    unit = [units.setdefault(_unit(each, at), len(units)) for at, each in enumerate(snapshot.subscriptions)]
    no_echo = np.array([each.no_echo for each in snapshot.subscriptions], dtype=np.bool_)
    clients = tuple(each.client for each in snapshot.subscriptions) if no_echo.any() else ()
    return Terms(index_of(snapshot.filters()), np.array(unit, dtype=np.int64), no_echo, clients)


def _unit(each: Subscription, at: int) -> tuple[Any, ...]:
    if each.group is not None:
        return "group", each.group, each.filter, each.syntax
    return ("session", each.client) if each.session else ("alone", at)


def shares(
    terms: Terms, topics: Any, syntaxes: Any, publishers: Any = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """(rows, subscriptions, share of each message): who gets what of Arrow arrays of topics, rows ascending."""
    offsets, found = match_rows(terms.index, topics, syntaxes)
    rows, ids = np.repeat(np.arange(len(topics)), np.diff(offsets)), found.astype(np.int64)
    if publishers is not None and len(terms.clients):
        own = [
            at for at in np.flatnonzero(terms.no_echo[ids])
            if publishers[int(rows[at])].as_py() == terms.clients[ids[at]]
        ]  # fmt: skip
        rows, ids = np.delete(rows, own), np.delete(ids, own)
    copies = rows * max(len(terms.unit), 1) + terms.unit[ids]
    _, inverse, sharing = np.unique(copies, return_inverse=True, return_counts=True)
    return rows, ids, 1.0 / sharing[inverse]
