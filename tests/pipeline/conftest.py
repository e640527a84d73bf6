"""One Spark for all tests of the pipeline, and archives for it to read.

A test module imports from pyspark, and from what imports it, inside its tests only: so it is collected where Spark is
not installed, and each test that asks for `spark` is skipped with the reason.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fanlight_archive import Writer
from scripts.share_classes import CLASSES, QUIETLY
from tests import require
from tests.archive.messages import batch

# Of each JVM here: it lives for seconds, so that compiling well does not pay; its classes come from the archive that
# `make test` has made, where that is of the same Java and the same jars.
JAVA_OPTIONS = f"-XX:TieredStopAtLevel=1 -XX:SharedArchiveFile={CLASSES} {QUIETLY}"
# Queries over a few hundred rows: making Java of each, compiling it, and planning anew between its stages takes longer
# than interpreting it, a third of all the time of the JVM. `as_shipped` is for tests that go through all of it.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}  # fmt: skip
SHIPPED = {
    "spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}  # fmt: skip


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The SparkSession of all tests: quick to start, two cores, and all that it writes below pytest's folder."""
    require.spark()
    from fanlight_spark.session import local_session

    os.environ["SPARK_SUBMIT_OPTS"] = JAVA_OPTIONS  # also of the JVMs that tests start in processes of their own
    folder = tmp_path_factory.mktemp("spark")
    places = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder / "local")}
    settings = {**places, **INTERPRETED}
    session = local_session("tests", cores=2, quick=True, settings=settings)
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def as_shipped(spark: Any) -> Iterator[None]:
    """Queries are compiled, and planned anew between their stages, as Spark does where nothing is set."""
    for name, value in SHIPPED.items():
        spark.conf.set(name, value)
    yield
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)


@pytest.fixture(scope="session")
def pages(shared_folder: Path) -> Path:
    """Every report that a job has written, by its test: test_written_pages.py looks at them.

    Workers that run side by side share it. Beside the pages: `<file of tests>.tested<worker>`, of each that was run.
    """
    folder = shared_folder / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(autouse=True)
def _pages_kept(request: pytest.FixtureRequest, pages: Path) -> Iterator[None]:
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    (pages / f"{Path(request.node.path).stem}.tested{worker}").touch()
    for number, page in enumerate(folder.rglob("report.html") if folder else ()):
        name = f"{Path(request.node.path).stem}-{request.node.name[:40]}-{number}.html"
        shutil.copyfile(page, pages / name.replace("/", "_"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an archive with 1,000 messages in ten batches and three segments, the last of them open."""
    path = tmp_path / "archive"
    fill(path, 0, 1_000, roll=400)
    return path


def fill(folder: Path, first: int, rows: int, *, size: int = 100, roll: int = 0, topic: str = "stock.AAPL") -> None:
    """Append messages that tell their number, a second each, in batches of `size`, and leave as a killed broker does.

    roll: close the segment after so many messages; 0 never.
    """
    writer = Writer(folder)
    for at in range(first, first + rows, size):
        if roll and at > first and (at - first) % roll == 0:
            writer.roll()
        writer.append(batch(at, min(size, first + rows - at), topic=topic))
    writer.abandon()
