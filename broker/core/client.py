"""A client: one connection that is through its handshake, whatever protocol it speaks."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from broker.core.budget import Account
from broker.wire.message import Format
from broker.wire.outbox import Outbox
from broker.wire.subscriptions import Subscriptions

if TYPE_CHECKING:
    from broker.core.ports import ClientConnection
    from broker.core.session import Session
    from broker.core.shares import Share
    from broker.core.subscription import Subscription


class Gone:
    """The connection of a client whose connection is closed: there is nobody to speak to."""

    def subscription_ended(self, subscription: "Subscription", reason: str) -> None: ...
    def say_goodbye(self, reason: str, text: str) -> None: ...
    def cut_off(self, reason: str, text: str) -> None: ...
    def unblocked(self) -> None: ...
    def held(self, held: bool, seconds: float) -> None: ...


GONE: Final = Gone()


@dataclass(slots=True, eq=False)
class Client:
    number: int  # unique in this broker's life; in logs and views
    name: str  # as the client says; not unique
    user: str  # as authenticated; "" if anonymous
    agent: str
    address: str
    port: int  # the peer's
    protocol: str
    format: Format  # how its messages are written
    outbox: Outbox
    connection: "ClientConnection"
    inbox: str  # where replies to it go, in `.` spelling: nobody else may subscribe there
    connected_at: float  # seconds, of the clock that `now` is from everywhere
    verified: bool = False  # is `user` proven to be its own? See identity.py
    label: str = ""  # a user name that nothing was checked against
    searching: int = 0  # subscriptions whose filters have several `#`
    session: "Session | None" = None  # None: what it holds ends with its connection
    share: "Share" = field(kw_only=True)  # of its principal; its session's, if it has one
    subscriptions: Subscriptions = field(default_factory=lambda: Subscriptions(by_filter=False))  # or the session's
    slow: bool = False  # its outbox or its session's queue was full at least once
    accounts: dict[int, Account] = field(default_factory=dict)  # of holds, by whose time they take: core.flow

    def account(self, kind: int) -> Account:
        found = self.accounts.get(kind)
        if found is None:
            found = self.accounts[kind] = Account()
        return found

    def __str__(self) -> str:
        return f"{self.name!r} (connection {self.number}, {self.address} port {self.port})"
