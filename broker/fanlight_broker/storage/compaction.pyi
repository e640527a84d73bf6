from fanlight_broker.storage.segments import Segment

class Compaction:
    sources: list[Segment]
    segment: Segment
    error: Exception | None
    done: bool
    stopping: bool
    def run(self) -> None: ...
