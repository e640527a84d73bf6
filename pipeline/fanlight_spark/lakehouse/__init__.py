"""An archive as a table that others read: Parquet with a log of commits, on a disk or in an object store.

    rows        an archive's messages as rows of the table, in lots of bounded size, sorted
    files       Parquet files of a table, on the disk before a commit names them; statistics
    delta       a Delta table: what is in it and how far it has got, in one commit
    iceberg     the same as an Iceberg table in a catalog
    compacting  from an archive to a table, exactly once
    holding     has the archive's retention wait for it
    small_files which files of a table become one
    command     the command lines

No Spark is needed or started: delta-rs (`deltalake`) or pyiceberg write the log.
docs/pipeline-lakehouse.md is the page for users.
"""
