"""Reading what `compact` has written: the sets of files that the manifest names, and no others."""

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
    manifest = filesets.load(folder)
    if manifest is None:
        raise ValueError(f"{folder}: nothing was compacted there")
    base = Path(folder) / filesets.MESSAGES
    paths = [str(base / one.folder) for one in manifest.sets if one.folder]
    if not paths:
        return spark.createDataFrame([], LAYOUT).drop("set")
    return spark.read.schema(LAYOUT).option("basePath", str(base)).parquet(*paths).drop("set")
