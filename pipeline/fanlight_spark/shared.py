"""An index for Spark's workers: small ones go with the function that uses them, large ones as a file.

    driver    index --> a file in Spark's own folder of files --> each executor fetches it once, to its own folder
    worker    FrozenIndex.open: mapped, so all workers of an executor read the same pages

So a worker has hardly more memory of its own than one without an index, whatever its size. The file is called by a
digest of it: the same index is sent once, however many queries ask it. Spark keeps its files for as long as the
session lasts, and removes them with it; that is why small indexes are no files. Over Spark Connect the client sends the
file to its session in the server, and has none of its own left.
"""

import tempfile
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from pyspark.core.files import SparkFiles
from pyspark.sql import SparkSession

import matchcore

#: Bytes of an index above which it is a file: some 10,000 filters. Spark would put larger functions in files itself.
LARGE: Final = 1 << 20
OPEN_AT_MOST: Final = 16  # indexes that a worker keeps mapped: memory of nobody, but address space


class SharedIndex:
    """In a function that is sent to workers: `index` is there what it was on the driver."""

    def __init__(self, session: Any, index: matchcore.FrozenIndex) -> None:
        """Raises OSError if there is no room for the file."""
        self._index: matchcore.FrozenIndex | None = index
        self._name = ""
        octets = memoryview(index)
        if len(octets) > LARGE:
            self._name = f"fanlight-{blake2b(octets, digest_size=16).hexdigest()}.index"
            self._index = None
            _send(session, index, self._name)

    @property
    def index(self) -> matchcore.FrozenIndex:
        """Raises matchcore.InvalidFrozenIndex if the file is not what was sent."""
        return self._index if self._index is not None else _opened(SparkFiles.get(self._name))


@lru_cache(OPEN_AT_MOST)
def _opened(path: str) -> matchcore.FrozenIndex:
    """Its checksum is compared here, once in a worker: what it reads for that, it would read soon anyway."""
    return matchcore.FrozenIndex.open(path)


def _send(session: Any, index: matchcore.FrozenIndex, name: str) -> None:
    if isinstance(session, SparkSession):
        # Where Spark itself would copy it to: it then serves it from there, and there is no second copy here.
        path = Path(SparkFiles.getRootDirectory()) / name
        if not path.exists():
            index.save(path)
        session.sparkContext.addFile(str(path))
        return
    with tempfile.TemporaryDirectory(prefix="fanlight-") as folder:
        index.save(path := Path(folder) / name)
        session.addArtifact(str(path), file=True)
