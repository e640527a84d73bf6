"""The topic matchers of the literature and of Python, behind one interface, to be compared with matchcore's.

    contender.pyx        what all compiled ones share: texts in, ids out, the loops that time them
    naive.pyx            a scan of interned filters: the floor of ambition
    static_bitmap.pyx    OpenAMQ's first table: known topics, a bitmap of subscriptions each
    bitmap.pyx           OpenAMQ's and WSO2's optimised bitmap: a table for each position
    trie_flat.pyx        the strongest trie we know how to write ("trie-I")
    trie_string.pyx      the usual trie: a string-keyed map in each node ("trie-S")
    sublist.pyx          NATS: the usual trie behind a result cache
    rabbit.pyx           RabbitMQ's trie: one table of edges keyed by node and word
    dfa.pyx              RabbitMQ's automaton made on the fly over a trie
    snapshot_trie.pyx    matchbox: the concurrent subscription trie, copy on write
    libraries.py         what a Python user would reach for: paho-mqtt, hyperscan, pyroaring, `re`
    registry.py          all of them by name, with what each can hold
    ours.py              matchcore's index behind the same interface
    workloads.py         the filters and topics they are asked about

    measure.py           what is measured of a contender in a workload, and how
    literature.py        the published experiments, made again
    threads.py           several threads at one contender (lock.pxd); aside.py: what else the bars ask
    collect.py           one run of all of it: a report, as committed in results/
    tables.py plots.py   a report shown; bars.py: judged; against.py: beside an earlier one
    paper.py drawing.pyx the example on paper, from the rows in memory
    document.py          docs/matching.md, whose tables and drawings are made
    __main__.py          `python -m fanlight_matchers`: the commands

Every file of a contender opens with where it comes from and what was left out. The data types they are made
of are here too (text.pxd, memory.pxd, interner.pxd, edges.pxd, slots.pxd), so that nothing of matchcore is
on either side of a comparison. All of them are also second oracles: tests/research.
"""
