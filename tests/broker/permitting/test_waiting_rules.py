"""Large files: rules that wait for whom they are about, rows that are read together, and names in little memory."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import Access, Action, Asker
from fanlight_permissions import waiting
from fanlight_permissions.csv_rows import TOGETHER
from fanlight_permissions.names import NOT_THERE, NameTable
from fanlight_permissions.own_rules import own_rules
from fanlight_permissions.permission_file import (
    CLOSED,
    PermissionFileError,
    compile_permissions,
    load,
    parse_permissions,
)
from fanlight_permissions.table import PermissionTable, in_order
from tests.broker.permitting import reference
from tests.broker.permitting.test_personal import rows as own_rows
from tests.broker.permitting.test_personal import with_own
from tests.broker.permitting.test_table_properties import LIMITS, askers, filters, table_of, tables, topics

# -- rules that wait -------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    tables(), st.lists(askers, min_size=1, max_size=4), st.lists(topics(), min_size=1, max_size=3),
    filters(names=False), st.lists(st.integers(0, 3), max_size=12), st.sampled_from([0, 20, 1_024]),
)
def test_whoever_comes_and_goes_is_decided_as_by_the_list(  # type: ignore[no-untyped-def]
    rules, some, asked, filter, moves, own_bytes
) -> None:
    """moves: who comes, or goes if it is there. own_bytes: with few, most parties never wait."""
    whole = table_of(rules)
    with patch.object(waiting, "OWN_BYTES", own_bytes), patch.object(waiting, "IDLE_PARTIES", 0):
        table = PermissionTable(in_order(rules), len(rules), CLOSED, LIMITS, waiting=True)
        assert not table.invalid
        there: dict[int, Any] = {}
        for who in moves:
            asker = some[who % len(some)]
            if who in there:
                table.release(there.pop(who))
            else:
                there[who] = table.grant_of(asker)
            for number, grant in there.items():
                asker = some[number % len(some)]
                for topic, syntax in asked:
                    for fields in (None, {"n": 2}):
                        verdict = grant.decide(Action.PUBLISH, topic.encode(), syntax, fields)
                        assert verdict == reference.decide(rules, CLOSED, asker, Action.PUBLISH, topic, syntax, fields)
                found = grant.decide_filter(Action.SUBSCRIBE, filter[0].encode(), filter[1])
                expected = whole.grant_of(asker).decide_filter(Action.SUBSCRIBE, filter[0].encode(), filter[1])
                assert found == expected


def users_table(users: int, rules: int = 1, *, deny: bool = False) -> PermissionTable:
    effect = "deny" if deny else "allow"
    rows = "".join(f"{effect},u{user},own/{user}/{rule}\n" for user in range(users) for rule in range(rules))
    file = parse_permissions(f"effect,user,publish\n{rows}allow,,#\n", "p", LIMITS, is_csv=True)
    return PermissionTable(in_order(file.rules), len(file.rules), CLOSED, LIMITS, waiting=True)


def test_rules_of_one_name_are_in_the_index_while_somebody_has_them() -> None:
    table = users_table(10, 3, deny=True)
    assert len(table.index) == 1  # the one for everybody
    first, again = table.grant_of(Asker(user="u3")), table.grant_of(Asker(user="u3", protocol="mqtt"))
    assert first is again
    assert len(table.index) == 4
    assert not first.decide(Action.PUBLISH, b"own/3/1", "mqtt").allowed
    with patch.object(waiting, "IDLE_PARTIES", 0):
        table.release(first)
        table.grant_of(Asker(user="u4"))
        assert len(table.index) == 7
        table.release(first)
        assert len(table.index) == 7  # until the next one comes: nothing is taken out while somebody goes
        table.grant_of(Asker(user="u5"))
        assert len(table.index) == 7
    assert not table.grant_of(Asker(user="u3")).decide(Action.PUBLISH, b"own/3/1", "mqtt").allowed


def test_those_who_have_gone_leave_some_at_a_time() -> None:
    table = users_table(40)
    with patch.object(waiting, "IDLE_PARTIES", 8):
        for grant in [table.grant_of(Asker(user=f"u{number}")) for number in range(39)]:
            table.release(grant)
        assert len(table.index) == 40
        counts = []
        for _ in range(10):
            table.release(table.grant_of(Asker(user="u39")))
            counts.append(len(table.index))
    assert counts == [37, 33, 29, 25, 21, 17, 13, 10, 10, 10]  # one for everybody, 9 idle: u39 comes back


def test_what_denies_is_looked_at_once_however_often_somebody_comes_back() -> None:
    table = users_table(3, 2, deny=True)
    with patch.object(waiting, "IDLE_PARTIES", 0):
        for number in range(12):
            table.release(table.grant_of(Asker(user=f"u{number % 3}")))
        grant = table.grant_of(Asker(user="u1"))
    assert grant.decide_filter(Action.PUBLISH, b"own/1/0", "mqtt").access is Access.NONE
    denials = [list(table.denials(party, number, b"")) for party in range(4) for number in table.numbers_of(party)]
    assert [len(each) for each in denials] == [0, 0, 2, 0]  # everybody's, u0's, u1's, u2's


def test_a_party_with_many_rules_is_in_the_index_from_the_beginning() -> None:
    table = users_table(2, 80, deny=True)
    assert len(table.index) == 161
    grant = table.grant_of(Asker(user="u1"))
    assert len(table.index) == 161
    assert not grant.decide(Action.PUBLISH, b"own/1/0", "mqtt").allowed


def test_a_rule_that_is_too_long_to_be_packed_is_there_whoever_comes_and_goes() -> None:
    with patch("fanlight_permissions.rule_store.PACKED_MAX", 6):
        rows = "effect,user,publish\ndeny,u1,x\ndeny,u1,a/b/c/d\nallow,u2,b\nallow,,#\n"
        file = parse_permissions(rows, "p", LIMITS, is_csv=True)
        table = PermissionTable(in_order(file.rules), 4, CLOSED, LIMITS, waiting=True)
    with patch.object(waiting, "IDLE_PARTIES", 0):
        for user in ("u1", "u2", "u1", "u2"):
            table.release(table.grant_of(Asker(user=user)))
        grant = table.grant_of(Asker(user="u1"))
    assert grant.decide_filter(Action.PUBLISH, b"a/b/c/d", "mqtt").access is Access.NONE
    assert not grant.decide(Action.PUBLISH, b"a/b/c/d", "mqtt").allowed


def test_a_grant_that_everybody_has_left_permits_nothing_by_rules_that_are_gone() -> None:
    table = users_table(2, deny=True)
    grant = table.grant_of(Asker(user="u1"))
    assert grant.decide(Action.PUBLISH, b"a", "mqtt").allowed
    table.release(grant)
    assert not grant.decide(Action.PUBLISH, b"a", "mqtt").allowed
    assert not grant.decide(Action.PUBLISH, b"$x", "mqtt").allowed


@settings(max_examples=100, deadline=None)
@given(
    tables(), st.lists(st.tuples(askers, own_rows()), min_size=2, max_size=4),
    st.lists(topics(), min_size=2, max_size=6), st.lists(filters(names=False), min_size=1, max_size=3),
    st.lists(st.integers(0, 3), min_size=2, max_size=12),
)
def test_those_with_rules_of_their_own_are_decided_by_rules_that_waited(  # type: ignore[no-untyped-def]
    rules, some, places, wanted, moves
) -> None:
    whole = table_of(rules)
    asked = [with_own(*each) for each in some]
    with patch.object(waiting, "IDLE_PARTIES", 0):
        table = PermissionTable(in_order(rules), len(rules), CLOSED, LIMITS, waiting=True)
        there: dict[int, Any] = {}
        for who in moves:
            number = who % len(asked)
            if number in there:
                table.release(there.pop(number))
            else:
                there[number] = table.grant_of(asked[number])
            for number, grant in there.items():
                expected = whole.grant_of(asked[number])
                for action in (Action.PUBLISH, Action.SUBSCRIBE):
                    for topic, syntax in places:
                        verdict = grant.decide(action, topic.encode(), syntax)
                        assert verdict == expected.decide(action, topic.encode(), syntax)
                    for filter, syntax in wanted:
                        found = grant.decide_filter(action, filter.encode(), syntax)
                        assert found == expected.decide_filter(action, filter.encode(), syntax)
    for grant in there.values():
        table.release(grant)
    assert table.classes == 0


def test_own_rules_of_a_grant_that_everybody_has_left_permit_nothing() -> None:
    """Neither what a rule denied that is gone, nor what the next one with the number of their set may do."""
    table = users_table(2, deny=True)
    own = own_rules([{"publish": "own/#"}])
    grant = table.grant_of(Asker(user="u1", own=own))
    assert not grant.decide(Action.PUBLISH, b"own/1/0", "mqtt").allowed
    assert grant.decide(Action.PUBLISH, b"own/x", "mqtt").rule == "own rule 1"
    with patch.object(waiting, "IDLE_PARTIES", 0):
        table.release(grant)
        table.grant_of(Asker(user="u0", own=own_rules([{"publish": ["other", "own/1/0", "own/x"]}])))
    for topic in (b"own/1/0", b"own/x", b"other"):
        assert not grant.decide(Action.PUBLISH, topic, "mqtt").allowed
        assert grant.decide_filter(Action.PUBLISH, topic, "mqtt").access is Access.NONE


def test_decisions_of_rules_that_waited_are_counted_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("effect,user,publish\nallow,u1,a\ndeny,u2,a\nallow,,#\n")
    table = load(path, LIMITS)
    for user in ("u2", "u1", "u2", "u3"):
        grant = table.grant_of(Asker(user=user))
        grant.decide(Action.PUBLISH, b"a", "mqtt")
        table.release(grant)
    assert table.counts(10) == {"line 2": 1, "line 3": 2, "line 4": 1}
    assert [table.line(rank) for rank in range(3)] == [2, 3, 4]


def test_a_filter_that_is_wrong_is_found_although_its_rule_waits() -> None:
    for filter in ("a/#/b", "a/b+", "a/" * 200 + "x"):
        file = parse_permissions(f"user,publish\nu1,a/b\nu2,{filter}\n", "p", LIMITS, is_csv=True)
        table = PermissionTable(in_order(file.rules), 2, CLOSED, LIMITS, waiting=True)
        assert [each.rule.line for each in table.invalid] == [3]


# -- rows that are read together -------------------------------------------------------------------------------------

CELLS = {
    "effect": ["allow", "deny", "", " deny"], "user": ["a", "b", "", "", "a*", " a "], "group": ["", "", "b", "a"],
    "publish": ["a/b", "a/+", "#", "", "x.y", "mqtt:a", "a/%u"], "subscribe": ["", "", "a/b", "a/#"],
    "name": ["", "", "", "one"], "address": ["", "", "", "10.0.0.0/8"],
    "protocol": ["", "", "mqtt", "mqtt 5.0"],
}  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=5, unique=True),
    st.lists(st.lists(st.integers(0, 6), min_size=0, max_size=6), max_size=12),
    st.lists(askers, min_size=1, max_size=3), topics(), st.sampled_from([1, 3, TOGETHER]),
)
def test_a_file_of_rows_decides_as_the_same_rules_one_by_one(  # type: ignore[no-untyped-def]
    tmp_path_factory, columns, picks, some, topic, together
) -> None:
    rows = [
        ",".join(CELLS[column][pick % len(CELLS[column])] for column, pick in zip(columns, row, strict=False))
        for row in picks
    ]
    text = "\n".join([",".join(columns), *rows]) + "\n"
    path: Path = tmp_path_factory.mktemp("rows", numbered=True) / "p.csv"
    path.write_text(text)
    expected: PermissionTable | list[str]
    found: PermissionTable | list[str]
    try:
        expected = compile_permissions(parse_permissions(text, str(path), LIMITS, is_csv=True), str(path), LIMITS)
    except PermissionFileError as error:
        expected = error.problems
    with patch("fanlight_permissions.csv_rows.TOGETHER", together):
        try:
            found = load(path, LIMITS)
        except PermissionFileError as error:
            found = error.problems
    if isinstance(expected, list) or isinstance(found, list):
        assert found == expected
        return
    assert len(found) == len(expected)
    for asker in some:
        for action in (Action.PUBLISH, Action.SUBSCRIBE, Action.CONNECT):
            verdict = found.grant_of(asker).decide(action, topic[0].encode(), topic[1])
            assert verdict == expected.grant_of(asker).decide(action, topic[0].encode(), topic[1])


def test_rows_behind_many_empty_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("effect,user,publish\n" + "\n" * (2 * TOGETHER) + "deny,a,x\nallow,a,#\n")
    grant = load(path, LIMITS).grant_of(Asker(user="a"))
    verdicts = [grant.decide(Action.PUBLISH, topic, "mqtt") for topic in (b"x", b"y")]
    line = 2 * TOGETHER + 2
    assert [(each.allowed, each.rule) for each in verdicts] == [(False, f"line {line}"), (True, f"line {line + 1}")]


def test_too_many_rules_are_refused_with_their_number(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("user,publish\n" + "a,b\n" * 600)
    with pytest.raises(PermissionFileError, match="600 rules with 600 filters; at most 500"):
        load(path, Limits(permissions_max=500))


def test_the_order_of_toml_is_kept_and_lines_are_right(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("".join(
        f'[[{"deny" if n % 2 else "allow"}]]\n# {n}\npublish = "t/{n // 2}"\n\n' for n in range(60)
    ))  # fmt: skip
    rules = parse_permissions(path.read_text(), "p", LIMITS).rules
    assert [(rule.line, rule.allow) for rule in rules] == [(1 + 4 * n, n % 2 == 0) for n in range(60)]


# -- names -----------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=6), st.integers(0, 2**32), max_size=60), st.lists(st.text(max_size=6)))
def test_names_are_found_and_no_others(known: dict[str, int], others: list[str]) -> None:
    with patch("fanlight_permissions.names.BUCKETS_MIN", 2):
        table = NameTable()
    for name, number in known.items():
        assert table.find(name) == NOT_THERE
        table.add(name, number)
    assert dict(table.items()) == known
    for name in (*known, *others, *(str(number) for number in known.values())):
        assert table.find(name) == known.get(name, NOT_THERE)


def test_names_take_little_memory() -> None:
    table = NameTable(100_000)
    for number in range(100_000):
        table.add(f"device{number}", number)
    assert table.nbytes < 30 * 100_000
