"""Jobs over an archive: each a transform from DataFrame to DataFrame, and a thin `python -m pipeline.jobs.NAME`.

    command  what all command lines have in common         report, plots  a page for people, with pictures
    compact  segments to Parquet                           traffic        how much of what, and for how many
    ohlc     bars of the market's prices                   audience       who gets what, and what for
    whatif   two snapshots of subscriptions compared       workload       a model of the load, and a load by it

docs/pipeline-jobs.md is the page for users.
"""
