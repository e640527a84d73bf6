"""The place of the store (storing.py) in a broker whose settings name no folder."""

from typing import Final

from fanlight_broker import logs
from fanlight_broker.parts import Part

log: Final = logs.get("store")


class InMemory(Part):
    """Keeps nothing, and logs at the start that it does not."""

    name = "store"
    trouble: str | None = None
    promise = "in memory only"

    async def start(self) -> None:
        log.info("in_memory_only", advice="nothing survives a restart; --data DIR keeps it in a folder")
