from collections.abc import Sequence

from broker.wire.fanout import Group, Target

def gather(
    by_id: Sequence[Target | None], ids: tuple[int, ...], first: bytes | None, separators: bytes
) -> tuple[list[Target], list[Group], list[list[Target]]]: ...
