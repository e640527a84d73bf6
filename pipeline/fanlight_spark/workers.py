"""What is done once in each Python worker of Spark."""

import gc
import sys
from functools import cache


@cache
def settle() -> None:
    """Take what is in memory now out of the garbage collector's rounds; only in a process that Spark has forked.

    Spark's daemon (pyspark/daemon.py) collects all garbage after each task. That takes 50 to 100 ms, because pyarrow,
    numpy, pandas and PySpark have some 200,000 objects that stay for good: as long as decoding 200,000 payloads.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name == "pyspark.daemon":
        gc.collect()
        gc.freeze()
