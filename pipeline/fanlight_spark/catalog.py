"""CREATE TABLE t USING fanlight OPTIONS (...): the options of a table in a catalog of Spark.

Spark (seen with 4.3) gives a Python source the options of such a table once, when the table is made and its columns
are asked for; whoever reads the table is given its columns, and no options. So the options are kept with the columns:
in the metadata of the first, which the catalog keeps. A table with a list of columns of its own has no such place.
What is made of these columns may keep them, too, so a password is refused.
"""

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import StructField, StructType

METADATA: Final = "fanlight.options"  # of the first column
#: What a catalog adds of its own when a table is made, beside each option once more behind `option.`.
OF_CATALOG: Final = frozenset(
    ["location", "owner", "provider", "comment", "external", "is_managed_location", "collation"]
)
REPEATED: Final = "option."
SECRET: Final = "password"


def asked(given: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """(the options without what a catalog adds, whether a catalog asks)."""
    lowered = {name.lower() for name in given}
    if not lowered >= {"provider", "owner"}:
        return dict(given), False
    added = {name for name in lowered if name.startswith(REPEATED) and name.removeprefix(REPEATED) in lowered}
    return {name: value for name, value in given.items() if name.lower() not in OF_CATALOG | added}, True


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """The columns of a table that keep its options. Raises ValueError."""
    if SECRET in options:
        raise ValueError(f"{SECRET}: not of a table in a catalog, which would show it to whoever reads the table")
    first, *others = schema.fields
    kept = {**(first.metadata or {}), METADATA: json.dumps(dict(options))}
    return StructType([StructField(first.name, first.dataType, first.nullable, kept), *others])


def kept(schema: StructType, given: Mapping[str, str]) -> dict[str, str]:
    """The options of whoever reads: those given, over those of the table that the columns are of."""
    names = {name.lower() for name in given}
    if names & {"path", "url"} or not schema.fields:
        return dict(given)  # no table of a catalog, even if its columns were taken from one
    of_table: dict[str, str] = json.loads((schema.fields[0].metadata or {}).get(METADATA, "{}"))
    return {**{name: value for name, value in of_table.items() if name.lower() not in names}, **given}
