"""A bridge at work: attempts to make its link, one after the other, with back-off, and one line in the log a change.

    prepare --> the near session is there, with its subscriptions, and collects
    start   --> attempt --LinkDown--> wait (back-off with jitter) --> attempt ...      until `stop`
    rest    --> no attempt, and the near session goes on collecting                    until `start`
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final

from fanlight_broker import event_log
from fanlight_broker.bridging.attempt import Attempt
from fanlight_broker.bridging.bridge_file import Bridge
from fanlight_broker.bridging.bridge_status import BridgeState, BridgeStatus, LinkDown
from fanlight_broker.bridging.near_side import NearSide
from fanlight_broker.core.subscriber import Session
from fanlight_broker.net.clock import monotonic, wall
from fanlight_broker.protocols.mqtt.version import V5

log: Final = event_log.get("bridges")

PAUSED: Final = "an operator has paused it"
STEADY_SECONDS: Final = 10.0  # a link that lasted for so long begins with the shortest back-off again


def wait_seconds(bridge: Bridge, attempts: int, chance: float) -> float:
    """Doubled with each attempt, and half of it by chance (0 to 1): many bridges do not come back at the same time."""
    longest = min(bridge.backoff_seconds_max, bridge.backoff_seconds_min * 2.0 ** min(attempts, 30))
    return longest * (0.5 + 0.5 * chance)


class BridgeLink:
    """broker   the name of this broker in marks of origin
    changed  is called when the state is another one
    """

    def __init__(
        self, bridge: Bridge, near_side: NearSide, broker: str, changed: Callable[["BridgeLink"], None]
    ) -> None:
        self.bridge = bridge
        self.status = BridgeStatus(bridge, since=wall())
        self.broker = broker
        self._near_side, self._changed = near_side, changed
        self._task: asyncio.Task[None] | None = None
        self._forgetting = False
        self.paused = False  # by an operator

    @property
    def is_up(self) -> bool:
        return self.status.state is BridgeState.UP

    def adopt(self, session: Session) -> None:
        """The near session as it was before a restart."""
        self.status.session = session
        self.status.bound()

    async def prepare(self, before: BridgeStatus | None = None) -> None:
        """Have the near session collect. before: of the bridge as it was until now. Raises LinkDown."""
        self._near_side.users.groups[self.bridge.local_user] = self.bridge.local_groups
        if before is not None:
            wanted = {each.remote_filter for each in self.bridge.routes if each.comes_in}
            known = {each.remote_filter for each in before.bridge.routes if each.comes_in}
            self.status.gone = tuple(sorted(known - wanted))
            self.status.outward, self.status.inward = before.outward, before.inward
            self.status.connects, self.status.failures = before.connects, before.failures
        await Attempt(self.status, self._near_side, self.broker).prepare()

    def start(self) -> None:
        """Make the link, unless an operator has paused it or it is being made."""
        if self.paused:
            self._set(BridgeState.PAUSED, PAUSED)
        elif self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=f"bridge {self.bridge.name}")

    async def rest(self, reason: str) -> None:
        """Close both connections, and keep both sessions."""
        await self._end_attempts()
        self._set(BridgeState.PAUSED if self.paused else BridgeState.STOPPED, reason)

    async def _end_attempts(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def stop(self, *, forget: bool = False) -> None:
        """Close both connections. forget: and end both sessions, the far one if it can be reached (5.0)."""
        self._forgetting = forget
        await self._end_attempts()
        waiting = self.status.waiting
        self._set(BridgeState.STOPPED, "the bridge is stopped")
        if forget:
            try:
                await Attempt(self.status, self._near_side, self.broker).forget()
            except LinkDown as error:
                log.warning("bridge_session_stays", bridge=self.bridge.name, reason=str(error))
            self._near_side.users.groups.pop(self.bridge.local_user, None)
            log.info("bridge_removed", bridge=self.bridge.name, lost=waiting)

    async def _run(self) -> None:
        bridge, status, attempts = self.bridge, self.status, 0
        while True:
            for host, port in bridge.addresses:
                status.address = f"{host}:{port}"
                self._set(BridgeState.CONNECTING, status.reason)
                begun, reason = monotonic(), await self._attempt(host, port)
                was_up = status.state is BridgeState.UP
                if was_up and monotonic() - begun >= STEADY_SECONDS:
                    attempts = 0
                wait, attempts = wait_seconds(bridge, attempts, random.random()), attempts + 1
                if was_up or reason != status.reason:
                    log.warning(
                        "bridge_down", bridge=bridge.name, address=status.address, reason=reason,
                        waiting=status.waiting, retry_seconds=round(wait, 1),
                    )
                self._set(BridgeState.WAITING, reason)
                await asyncio.sleep(wait)

    async def _attempt(self, host: str, port: int) -> str:
        """Returns why the link could not be made, or has ended."""
        attempt = Attempt(self.status, self._near_side, self.broker)
        try:
            await attempt.run(host, port, self._up)
        except LinkDown as error:
            self.status.failures += 1
            return str(error)
        except Exception as error:  # a fault of the broker: logged with its traceback, and the bridge goes on
            log.error("internal_error", bridge=self.bridge.name, exc_info=error)
        finally:
            attempt.close(expiry=0 if self._forgetting else None)
        self.status.failures += 1
        return "a fault of this broker"

    def _up(self, present: bool) -> None:
        self._set(BridgeState.UP, "")
        log.info(
            "bridge_up", bridge=self.bridge.name, address=self.status.address, session_present=present,
            waiting=self.status.waiting,
        )

    def _set(self, state: BridgeState, reason: str) -> None:
        status, was_up = self.status, self.is_up
        status.reason = reason
        if state is not status.state:
            status.state, status.since = state, wall()
            if was_up or state is BridgeState.UP:
                self._changed(self)

    def view(self) -> Mapping[str, Any]:
        bridge, status = self.bridge, self.status
        return {
            "name": bridge.name, "state": status.state.value, "reason": status.reason, "since": status.since,
            "address": status.address, "version": "5.0" if bridge.version is V5 else "3.1.1", "tls": bridge.tls,
            "user": bridge.local_user, "client": bridge.local_client_id, "waiting": status.waiting,
            "waiting_max": bridge.queue_messages_max, "connects": status.connects, "failures": status.failures,
            "out": asdict(status.outward), "in": asdict(status.inward), "wanted_filters": status.wanted_filters,
            "routes": [
                {"direction": each.direction.value, "local": each.local_filter, "remote": each.remote_filter,
                 "qos": each.qos, "where": each.where, "retained": each.retained}
                for each in bridge.routes
            ],
            "refused_filters": dict(status.refused_filters),
        }
