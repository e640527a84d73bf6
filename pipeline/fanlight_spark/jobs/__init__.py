"""Jobs over an archive: each a transform from DataFrame to DataFrame, and a thin `python -m fanlight_spark.jobs.NAME`.

    command  what all command lines have in common         report, charts  a page for people, with charts
    compact  segments to Parquet, or to a Delta table      traffic        how much of what, and for how many
    bars     of ticks, by any decoder                      audience       who gets what, and what for
    whatif   two snapshots of subscriptions compared       workload       a model of the load, and a load by it
    permissions   what new rules decide differently about what was archived
    privileges    the least that rules have to allow, and rules that decide nothing
    capacity      the load at 10x and 100x against what a node can do, by measured costs
    recipients    who got it: subscriptions as they were when each message passed
    subscriptions what could go: redundant ones, ones that could be one, ones that never match
    headways      how long after each other vehicles pass the same place
    infer         fields of decoders, found in an archive; without Spark
    silence       what fell silent, or is not as it was: topics and publishers against their own history

docs/pipeline-jobs.md is the page for users.
"""

import sys
from importlib.util import find_spec

if __name__ == "fanlight_spark.jobs" and sys.argv[:1] == ["-m"]:
    # `python -m fanlight_spark.jobs.NAME`, before NAME is imported: a sentence instead of its traceback.
    _asked = sys.orig_argv[sys.orig_argv.index("-m") + 1] if "-m" in sys.orig_argv else ""
    _lacking = [name for name in ("pyspark", "pandas", "pyarrow") if find_spec(name) is None]
    if _lacking and _asked.startswith(f"{__name__}."):
        print(
            f"python -m {_asked}: this needs {', '.join(_lacking)}, not installed for {sys.executable}: "
            "`make spark` in a checkout, `pip install 'pyspark>=4.2,<4.4' 'pandas<3' pyarrow` elsewhere",
            file=sys.stderr,
        )
        sys.exit(2)
