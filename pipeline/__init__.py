"""The pipeline: what was archived, as Spark's DataFrames. One code for a laptop and for a cluster.

    session    a SparkSession with what the rest needs      source     the data source `fanlight`
    positions  where in an archive; dividing the work       pushdown   what Spark says of rows that it wants
    topics     which topics filters match, in Arrow         matching   subscriptions joined with messages

It imports the archive's format and the matcher, and nothing of the broker. This package alone asks for no Spark: that
is the extra `[spark]`. docs/pipeline.md is the page for users.
"""
