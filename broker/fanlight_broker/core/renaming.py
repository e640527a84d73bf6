"""An operator moves a session to another client identifier: a device was replaced, and what waits is for the new one.

    its client, if it is connected  --> its will is published, and the connection ends
    a session of the other name     --> is in the way, or ends with its messages (`replace`)
    the session                     --> has the other name: subscriptions, what waits, what is in flight

Nothing is copied, so nothing can be lost or doubled in between. With a store the change is one fact of the log: a crash
finds the session under the one name or the other.

What is in flight was sent to the client before, which may have had it: the client that comes next is sent it again, as
any client that comes back. Packet identifiers that were received with QoS 2 are forgotten. They are the other client's,
and a new one may use the same numbers for other messages.
"""

from dataclasses import replace as copy
from typing import NamedTuple

from fanlight_broker.core.errors import FanlightError, StoreUnavailable
from fanlight_broker.core.sessions import Sessions
from fanlight_broker.core.subscriber import Client, Session
from fanlight_broker.wire.subscriptions import Subscriptions


class MovedSession(NamedTuple):
    """What it has under its new name; lost: messages of the session that was in the way."""

    messages: int  # that wait
    in_flight: int
    subscriptions: int
    lost: int


def move(sessions: Sessions, session: Session, name: str, now: float, *, replace: bool = False) -> MovedSession:
    """Raises FanlightError, LimitExceeded, StoreUnavailable: nothing has changed then."""
    before, in_the_way = session.name, sessions.get(name)
    sessions.clients.check_names(name, None)
    if in_the_way is session:
        raise FanlightError(f"the session is that of {name!r} already")
    if session.expiry <= 0:
        raise FanlightError(f"the session of {before!r} ends with its connection, so that it cannot be moved")
    if sessions.journal.position.refusing:
        raise StoreUnavailable
    if in_the_way is not None and not replace:
        waiting = len(in_the_way.window.queue) + in_the_way.window.in_flight
        raise FanlightError(
            f"{name!r} has a session of its own, with {waiting} messages; end it first, or replace it",
            client=name, messages=waiting, connected=in_the_way.connected,
        )
    if in_the_way is not None and in_the_way.subscriber.user != session.subscriber.user:
        raise FanlightError(f"the session of {name!r} is another user's; end it first", client=name)
    lost = _end(sessions, in_the_way, now) if in_the_way is not None else 0
    if (client := session.client) is not None:
        sessions.leave(client, now, will=True)
        _part(client)
        sessions.clients.kick(client, f"an operator has moved this session to {name!r}")
    if session.will is not None:
        sessions.publish_will(session, now)  # it is of the client before
    for identifier in session.unreleased.in_use():
        session.release(identifier)
    sessions.rename(session, name)
    session.charge()
    sessions.subscribing.enforcement.renew(session.subscriber)
    sessions.journal.session_changed(session)
    window = session.window
    return MovedSession(len(window.queue), window.in_flight, len(session.subscriptions), lost)


def _end(sessions: Sessions, session: Session, now: float) -> int:
    """End a session that is in the way. Returns how many messages are lost."""
    lost = len(session.window.queue) + session.window.in_flight
    if (client := session.client) is not None:
        sessions.leave(client, now, will=True, expiry=0.0)
        sessions.clients.kick(client, "an operator has put another session in the place of this one")
    else:
        sessions.end(session, now)
    return lost


def _part(client: Client) -> None:
    """Until its socket is closed, a connection has its own name, in views and in the log, and no session."""
    subscriber = client.subscriber
    subscriber.client = None
    client.subscriber = copy(
        subscriber, subscriptions=Subscriptions(by_filter=False), session=None, badge=None, searching=0, client=client
    )
