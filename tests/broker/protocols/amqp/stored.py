"""An AMQP world over a store, which can be killed at any moment and is made anew of what was synced."""

from collections.abc import Container
from pathlib import Path
from typing import Any

from fanlight_broker.protocols.amqp.format import FORMAT
from fanlight_broker.protocols.amqp.options import AmqpCounts
from fanlight_broker.protocols.amqp.vhost import Vhost, Vhosts
from tests.broker.protocols.amqp.world import World
from tests.broker.storage.stored_world import StoredWorld


class StoredAmqp(World):
    """Keywords are limits. A turn is synced while `syncs` is true. names: vhosts beside /."""

    def __init__(self, folder: Path, *, names: Container[str] = (), **limits: Any) -> None:
        super().__init__(**limits)
        self.syncs = True
        self._names = names
        self.stored = StoredWorld(folder, formats={FORMAT.family: FORMAT}, **limits)
        self._begin()

    def _begin(self) -> None:
        self.broker, self.now = self.stored.broker, self.stored.now
        self.counts, self.vhosts = AmqpCounts(), Vhosts(self._names)
        self.vhosts.begin(self.broker)

    @property
    def root(self) -> Vhost:
        return self.vhosts.of(self.broker)

    def turn(self) -> None:
        super().turn()
        self.stored.turn(synced=self.syncs)
        super().turn()

    def kill(self, *, after_round: bool = False) -> None:
        """What was not synced is lost, and every connection."""
        if after_round:
            self.stored.round()
        self.stored.crash()
        self.peers.clear()
        self.soon.clear()
        self._begin()
