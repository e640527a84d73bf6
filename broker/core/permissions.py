"""Permissions: who may publish and subscribe where (`ports.Permissions`). This one lets everybody."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.core.client import Client


class Unrestricted:
    unrestricted = True

    def check_publish(self, client: "Client", topic: bytes, syntax: str) -> None:
        pass

    def check_subscribe(self, client: "Client", filter: bytes, syntax: str) -> None:
        pass
