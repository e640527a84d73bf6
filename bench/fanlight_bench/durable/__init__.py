"""Durable messages, in Fanlight and beside other brokers: `python -m fanlight_bench peers durable`.

    stored_load.pyx    the load: publishers with a window, consumers that acknowledge; every delivery is checked
    couriers.py        what is said in MQTT, AMQP 0-9-1 and NATS JetStream once per connection
    links.py           connections on which messages may already wait, and the whole of a load
    disk.py            the device: sectors and flushes, a bare fdatasync, a folder's size, a cold cache
    brokers.py         the brokers, each with its data in a folder on a real disk
    rows.py            the rows of one broker: rates, a message to many sessions, a backlog, a restart
    plan.py            which rows, which brokers, in which order; the runs
    bars.py, document.py    what is promised; docs/benchmarks-durable.md

The load's reading of protocols is that of fanlight_bench/load, the brokers are those of fanlight_bench/peers.
"""
