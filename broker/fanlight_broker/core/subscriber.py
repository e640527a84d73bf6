"""A subscriber: who has subscriptions, and who publishes. It outlives connections.

    Subscriber   name, user, protocol, format, share, subscriptions
       |-- session   what is kept while nobody is connected; None: all ends with the connection
       '-- client    the present connection; None: there is none

A session owns its subscriber, and so does a client without a session. Targets, windows and views refer to it, so that a
session can have subscriptions and messages before anybody connects.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fanlight_broker.core.shares import Share
from fanlight_broker.wire.message import Format
from fanlight_broker.wire.subscriptions import Subscriptions

if TYPE_CHECKING:
    from fanlight_broker.core.client import Client
    from fanlight_broker.core.session import Session


@dataclass(slots=True, eq=False)
class Subscriber:
    name: str  # as the client says; of a session it is unique
    user: str  # as authenticated; "" if anonymous
    protocol: str
    format: Format  # how its messages are written
    share: Share  # of its principal
    inbox: str  # where replies to it go, in `.` spelling: nobody else may subscribe there
    verified: bool = False  # is `user` proven to be its own? See identity.py
    label: str = ""  # a user name that nothing was checked against
    subscriptions: Subscriptions = field(default_factory=lambda: Subscriptions(by_filter=False))
    searching: int = 0  # subscriptions whose filters have several `#`
    session: "Session | None" = None
    client: "Client | None" = None
