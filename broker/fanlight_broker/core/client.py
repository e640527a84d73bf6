"""A client: one connection that is through its handshake, whatever protocol it speaks."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fanlight_broker.core.budget import HoldTime
from fanlight_broker.core.shares import Share
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.wire.message import Format
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.subscriptions import Subscriptions

if TYPE_CHECKING:
    from fanlight_broker.core.ports import ClientConnection
    from fanlight_broker.core.session import Session
    from fanlight_broker.core.subscription import Subscription


class ClosedConnection:
    """The connection of a client whose connection is closed: there is nobody to speak to."""

    def subscription_ended(self, subscription: "Subscription", reason: str) -> None: ...
    def say_goodbye(self, reason: str, text: str) -> None: ...
    def cut_off(self, reason: str, text: str) -> None: ...
    def unblocked(self) -> None: ...
    def notify_held(self, held: bool, seconds: float) -> None: ...


CLOSED_CONNECTION: Final = ClosedConnection()


@dataclass(slots=True, eq=False)
class Client:
    number: int  # unique in this broker's life; in logs and views
    subscriber: Subscriber
    agent: str
    address: str
    port: int  # the peer's
    outbox: Outbox
    connection: "ClientConnection"
    format: Format  # how messages are written on this connection; its subscriber's is that of the latest one
    connected_at: float  # seconds, of the clock that `now` is from everywhere
    slow: bool = False  # its outbox or its session's queue was full at least once
    accounts: dict[int, HoldTime] = field(default_factory=dict)  # of holds, by whose time they take: core.flow

    @property
    def name(self) -> str:
        return self.subscriber.name

    @property
    def user(self) -> str:
        return self.subscriber.user

    @property
    def verified(self) -> bool:
        return self.subscriber.verified

    @property
    def label(self) -> str:
        return self.subscriber.label

    @property
    def protocol(self) -> str:
        return self.subscriber.protocol

    @property
    def inbox(self) -> str:
        return self.subscriber.inbox

    @property
    def share(self) -> Share:
        return self.subscriber.share

    @property
    def subscriptions(self) -> Subscriptions:
        return self.subscriber.subscriptions

    @property
    def session(self) -> "Session | None":
        return self.subscriber.session

    def account(self, kind: int) -> HoldTime:
        found = self.accounts.get(kind)
        if found is None:
            found = self.accounts[kind] = HoldTime()
        return found

    def __str__(self) -> str:
        return f"{self.name!r} (connection {self.number}, {self.address} port {self.port})"
