from collections.abc import Sequence

from fanlight_broker.wire.group import QueueGroup
from fanlight_broker.wire.target import Target

def heard_by_own(targets: list[Target]) -> list[Target]: ...
def summed_up(targets: list[Target]) -> tuple[int, bool, bytes]: ...
def gather(
    by_id: Sequence[Target | None], ids: tuple[int, ...], first: bytes | None, separators: bytes
) -> tuple[list[Target], list[QueueGroup], list[list[Target]]]: ...
