"""Brokers compared: `make bench-peers`, `python -m fanlight_bench peers`. __main__.py has the command line.

    peer.py         what a broker must be able to do here: be there or not, its version, start, stop
    mosquitto.py, nats.py, rabbitmq.py, amqtt.py, fanlight.py, null.py    one broker each, with its configuration
    certificate.py  for those that are spoken to by TLS
    contenders.py   who takes part: a broker and the protocol that it is spoken to in
    install.py      what is missing, how it is installed, and whether the user wants that
    plan.py         which scenarios, who is left out of them and why, in which order, how long that takes
    compare.py      the runs themselves
    results.py      the file of results: medians and what the runs differ by
    bars.py         what is promised, and what was reached
    document.py     docs/benchmarks.md and the chart of the README, made from a file of results
    plots.py        the drawings in them

Nothing is measured here: the load, its checks and its figures are those of bench/fanlight_bench/load.
"""
