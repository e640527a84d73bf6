"""Clients without a connection, for tests of the core."""

from collections.abc import Callable, Generator, Iterator
from typing import Any

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.explain import explain
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import Permissions
from fanlight_broker.core.ports import View
from fanlight_broker.core.quota import Quota
from fanlight_broker.core.subscriber import Client
from fanlight_broker.core.subscription import Subscription, SubscriptionOptions
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.badge import Badge


class Listener:
    """The protocol side of a client (`ClientConnection`): what the core tells it, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def subscription_ended(self, subscription: Subscription, reason: str) -> None:
        self.told.append(("ended", subscription.number, reason, subscription.delivered, subscription.dropped))

    def say_goodbye(self, reason: str, text: str) -> None:
        self.told.append(("goodbye", reason))

    def cut_off(self, reason: str, text: str) -> None:
        self.told.append(("cut off", reason))

    def unblocked(self) -> None:
        self.told.append(("unblocked",))

    def use_badge(self, badge: Badge | None) -> None: ...
    def use_quota(self, quota: Quota) -> None: ...

    def recheck(self) -> Iterator[None]:
        return iter(())

    def notify_held(self, held: bool, seconds: float) -> None:
        self.told.append(("held",) if held else ("goes on", round(seconds, 6)))


def at_once(work: Callable[[], Any]) -> None:
    """In place of a loop's `call_soon`, where nobody is in the middle of anything that could be put off."""
    work()


def broker_with(permissions: Permissions | None = None, **limits: Any) -> Broker:
    """Unless a test is about them: full outboxes act at once, and clients may choose any policy."""
    limits = {"burst_seconds_max": 0, "pause_allowed": True, **limits}
    return Broker(Limits(**limits), schedule=lambda: None, next_turn=at_once, permissions=permissions)


def connect(broker: Broker, policy: str | None = None) -> tuple[Client, Listener]:
    connection = Listener()
    client = broker.clients.connect(
        broker.new_outbox(policy), connection, 0.0,
        name=None, user="", agent="", address="192.0.2.1", protocol="test", format=FORMAT,
    )  # fmt: skip
    return client, connection


def subscribe(
    broker: Broker, client: Client, number: int, text: bytes, syntax: str = "amqp", **options: Any
) -> Subscription:
    return broker.subscribing.subscribe(client, number, text, syntax, SubscriptionOptions(**options))


def explained(*arguments: Any) -> View:
    """What `explain` returns, in one turn."""
    return finished(explain(*arguments))


def finished(steps: Generator[None, None, View]) -> View:
    """What a generator returns."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            view: View = end.value
            return view
