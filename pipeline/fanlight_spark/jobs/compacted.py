"""Reading what `compact` has written: the files that the manifest or the log of a table names, and no others.

Files on a disk are Spark's to read. Those of an object store are read by delta-rs in the workers, with what its
environment says (AWS_...): Spark needs jars for it.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DateType, IntegerType, StringType, StructField, StructType

from fanlight_spark import workers
from fanlight_spark.jobs import filesets
from fanlight_spark.source import COLUMNS

STORES: Final = ("s3://", "file://")
INSTALL: Final = "pip install 'deltalake>=1.6'"
LAYOUT: Final = StructType(
    [
        *COLUMNS,
        StructField("date", DateType()),
        StructField("hour", IntegerType()),
        StructField("root", StringType()),
        StructField("set", StringType()),
    ]
)


def read(spark: SparkSession, folder: Path | str) -> DataFrame:
    """The published messages: the columns of the archive, and date, hour and root, by which folders are skipped."""
    if is_delta(folder):
        return _read_delta(spark, folder)
    manifest = filesets.load(folder)
    if manifest is None:
        raise ValueError(f"{folder}: nothing was compacted there")
    base = Path(folder) / filesets.MESSAGES
    paths = [str(base / one.folder) for one in manifest.sets if one.folder]
    if not paths:
        return spark.createDataFrame([], LAYOUT).drop("set")
    return spark.read.schema(LAYOUT).option("basePath", str(base)).parquet(*paths).drop("set")


def is_delta(folder: Path | str) -> bool:
    """Raises ValueError of a table in a store that cannot be asked."""
    if not _in_store(folder):
        return (Path(folder) / "_delta_log").is_dir()
    if find_spec("deltalake") is None:
        raise ValueError(f"{folder}: an object store is read by deltalake, which is not installed: {INSTALL}")
    from deltalake import DeltaTable

    try:
        return DeltaTable.is_deltatable(str(folder))
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder}: {error}; its settings are those of the environment (AWS_...)") from error


def _in_store(folder: Path | str) -> bool:
    """A url that delta-rs reads. Others, as s3a:// and hdfs://, are Spark's."""
    return str(folder).startswith(STORES)


def _read_delta(spark: SparkSession, folder: Path | str) -> DataFrame:
    """The present version of a table on a disk; Spark's own reader of the format needs jars."""
    if find_spec("deltalake") is None:
        raise ValueError(f"{folder}: a Delta table, and deltalake is not installed: {INSTALL}")
    from deltalake import DeltaTable

    table = DeltaTable(str(folder))
    layout = StructType([*COLUMNS, StructField("root", StringType()), StructField("date", DateType())])
    if set(layout.names) - {field.name for field in table.schema().fields}:
        raise ValueError(f"{folder}: a Delta table without the columns of an archive")
    files = table.file_uris()
    if not files:
        return spark.createDataFrame([], layout)
    if _in_store(folder):
        return _read_store(spark, str(folder), table, layout)
    return spark.read.schema(layout).option("basePath", str(Path(folder).absolute())).parquet(*files)


def _read_store(spark: SparkSession, url: str, table: Any, layout: StructType) -> DataFrame:
    """A task a file. Nothing is left out beforehand: the whole of each file is read."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    from pyspark.sql.pandas.types import to_arrow_schema

    added = pa.table(table.get_add_actions(flatten=True))
    files = list(zip(added["path"].to_pylist(), added["partition.date"].to_pylist(), strict=True))
    schema = to_arrow_schema(layout, timezone="UTC")

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]
        from deltalake.fs import DeltaStorageHandler
        from pyarrow.fs import PyFileSystem  # type: ignore[import-untyped, unused-ignore]

        workers.settle()
        store = PyFileSystem(DeltaStorageHandler(url))
        for named in batches:
            for path, day in zip(*(column.to_pylist() for column in named.columns), strict=True):
                with store.open_input_file(path) as file:
                    for batch in pq.ParquetFile(file).iter_batches():
                        columns = {name: batch.column(name) for name in batch.schema.names}
                        columns["date"] = pa.array([day] * batch.num_rows, pa.date32())
                        arrays = [columns[field.name].cast(field.type) for field in schema]
                        yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    names = spark.createDataFrame(files, "path STRING, date DATE").repartition(len(files), "path")
    return names.mapInArrow(read, layout)
