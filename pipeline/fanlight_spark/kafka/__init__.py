"""The bridge to Kafka: an archive's messages as records, and records as messages of a broker. It needs no Spark.

    python -m fanlight_spark.kafka out /var/lib/fanlight/archive --kafka kafka:9092 --name plant-7 --topic telemetry
    python -m fanlight_spark.kafka in  fanlight://127.0.0.1:7420 --kafka kafka:9092 --name plant-7 --topic commands

    cluster         Kafka's clients, with what a bridge needs of them     position_topic  how far a bridge out has come
    outward         archive -> Kafka: transactions with positions         inward          Kafka -> broker: marks
    records         a message as a record, and a record as a message      __main__        the command

Out: records and the position behind them are one transaction. In: a record's place in Kafka is its mark at the broker,
which takes each mark once. docs/decisions/0036-kafka.md has the reasons, docs/pipeline-kafka.md is the page for users.
"""
