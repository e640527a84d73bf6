"""Permissions without a broker: who may do what on which topics, read from a file and decided (docs/permissions.md).

    decisions        actions, askers, verdicts: the words of all others
    permission_rule  a rule, and its filters           permission_file  the file, TOML or CSV, read into rules
    parties, scopes  who, and behind which key words   table            all rules as one table, which decides
    class_grant      what clients of one class may do  own_rules, personal  rules that a client brings along
    rule_store       where its rules are               waiting, names   rules about somebody who is not there
    csv_rows, plain_rows  rows that need no rule each  namespace_entries  who is in which namespace
    topics, reading  what all of them need

The broker asks a table for its clients; the pipeline asks one about what was archived.
docs/decisions/0021-permissions.md has the design.
"""
