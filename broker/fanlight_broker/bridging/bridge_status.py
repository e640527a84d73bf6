"""What is known of a bridge beyond one connection: shown in views, metrics and $SYS, and used by the next attempt."""

from dataclasses import dataclass, field
from enum import StrEnum

from fanlight_broker.bridging.bridge_file import Bridge
from fanlight_broker.bridging.relay import RelayCounts
from fanlight_broker.core.limits import QueuePolicy
from fanlight_broker.core.subscriber import Session
from fanlight_broker.protocols.mqtt.version import V5


class BridgeState(StrEnum):
    WAITING = "waiting"  # for the next attempt
    CONNECTING = "connecting"
    UP = "up"
    PAUSED = "paused"  # by an operator, until one resumes it or the broker starts again
    STOPPED = "stopped"


class LinkDown(Exception):
    """The link cannot be made, or has ended. The text says why."""


@dataclass(slots=True)
class BridgeStatus:
    bridge: Bridge
    state: BridgeState = BridgeState.WAITING
    since: float = 0.0  # wall clock, of the state
    reason: str = ""  # why it is not up
    address: str = ""
    connects: int = 0
    failures: int = 0
    outward: RelayCounts = field(default_factory=RelayCounts)
    inward: RelayCounts = field(default_factory=RelayCounts)
    refused_filters: dict[str, str] = field(default_factory=dict)  # of the present link, with the reason
    wanted_filters: int | None = None  # that the far side says it wants; None: it does not say, so everything
    # For the next attempt.
    session: Session | None = None  # the near one
    bridge_bit: bool = False  # mark the connection as a bridge's, in 3.1.1
    asked_before: bool = False  # the far session has been asked for everything since the start of the process
    retained_sent: bool = False
    gone: tuple[str, ...] = ()  # filters that the far session may still have

    def __post_init__(self) -> None:
        self.bridge_bit = self.bridge.version is not V5

    @property
    def waiting(self) -> int:
        """Messages in the near session that the far side has not acknowledged."""
        if self.session is None:
            return 0
        return len(self.session.window.queue) + self.session.window.in_flight

    def bound(self) -> None:
        """The queue of the near session has the bounds of the bridge, whatever limits or quotas were put in force."""
        if self.session is not None:
            queue, bridge = self.session.window.queue, self.bridge
            queue.messages_max, queue.bytes_max = bridge.queue_messages_max, bridge.queue_bytes_max
            queue.drop_oldest = bridge.queue_policy is QueuePolicy.DROP_OLDEST
