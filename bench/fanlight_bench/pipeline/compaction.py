"""An archive compacted to Parquet by date, hour and root, beside a plain write of the same messages.

    plain     the source, written as Parquet as it comes: one folder, a file for each task
    compact   the job: folders, rows in the order of their offsets, a manifest
"""

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from fanlight_bench.pipeline import messages
from fanlight_bench.pipeline.case import Bench, PipelineCase, PipelineGroup
from fanlight_spark.jobs import compact

ROWS = 500_000


def groups(bench: Bench) -> Iterator[PipelineGroup]:
    session, folder = bench.session, bench.folder / "compaction"
    folder.mkdir()
    rows = bench.some(ROWS)
    archive, _ = messages.write(folder, messages.topics(), rows)
    source = session.read.format("fanlight").load(str(archive))
    numbers = count()

    def plain() -> None:
        source.write.option("compression", "zstd").mode("overwrite").parquet(str(folder / "plain"))

    def compacted() -> Path:
        out = folder / f"out-{next(numbers)}"
        if (found := sum(made.messages for made in compact.compact(session, archive, out))) != rows:
            raise AssertionError(f"{found} messages were compacted, and not {rows}")
        return out

    out = compacted()
    size = sum(path.stat().st_size for path in out.rglob("*.parquet"))
    shutil.rmtree(out)
    cases = [
        PipelineCase("plain", rows, plain),
        PipelineCase("compact", rows, lambda: shutil.rmtree(compacted()), ("plain",), slow=True),
    ]
    yield PipelineGroup("compaction", cases, {"bytes_per_message": round(size / rows, 1)})
