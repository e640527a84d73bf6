"""Reading what `compact` has written: the files that the manifest or the log of a table names, and no others."""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DateType, IntegerType, StringType, StructField, StructType

from fanlight_spark.jobs import filesets
from fanlight_spark.source import COLUMNS

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
    return (Path(folder) / "_delta_log").is_dir()


def _read_delta(spark: SparkSession, folder: Path | str) -> DataFrame:
    """The present version of a table on a disk; Spark's own reader of the format needs jars."""
    if find_spec("deltalake") is None:
        raise ValueError(f"{folder}: a Delta table, and deltalake is not installed: pip install 'deltalake>=1.6'")
    from deltalake import DeltaTable

    table = DeltaTable(str(folder))
    layout = StructType([*COLUMNS, StructField("root", StringType()), StructField("date", DateType())])
    if set(layout.names) - {field.name for field in table.schema().fields}:
        raise ValueError(f"{folder}: a Delta table without the columns of an archive")
    files = table.file_uris()
    if not files:
        return spark.createDataFrame([], layout)
    return spark.read.schema(layout).option("basePath", str(Path(folder).absolute())).parquet(*files)
