"""Payloads to typed columns: what is behind `fanlight_spark.decode` and the source's option `decoders`.

    file           decoders.toml                          table        a batch of messages to one of a table
    type_names     types of columns as text               times        ISO 8601 and numbers to instants
    fields         what a decoder makes of a payload      records      records of Python to columns, strictly
    json_rows      JSON, quickly where it can             json_flat    the same, compiled
    row_formats    MessagePack, CSV, text
    avro_rows, protobuf_rows    formats with a schema of their own
    inferring      what payloads have in them         proposing     decoders out of that, as text of a file

Nothing here needs Spark. docs/decisions/0032-decoders.md says why it is as it is.
"""
