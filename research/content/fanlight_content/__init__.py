"""Content-based matchers of the literature, behind one interface, to be compared with matchcore's selectors.

    selections.pyx   the selectors of a workload, compiled once for all: programs, conjunctions, criteria
    contender.pyx    what all contenders share; Contest: one for each filter, or one over all filters
    criteria.pyx     which criteria are true of a message: the first step of several of them

    lists.pyx        per subscriber after the topic (EMQX, Artemis, Solace): the baseline; over all filters: naive
    counting.pyx     Siena: a counter for each conjunction
    ours.pyx         matchcore's screens

Every file of a contender opens with where it comes from and what was left out. They are written for this comparison,
with matchcore's tables and memory beneath, and its programs to verify what they find: so they differ in how they
search. tests/research checks each against the interpreter that defines what a selector means.
"""
