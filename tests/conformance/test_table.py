"""The statements are whole, every mark names one, and the page says which tests show it."""

import re
import subprocess
import sys

import pytest

from tests.conformance.table import (
    ROOT,
    Shown,
    Statement,
    UnknownStatement,
    cells,
    escaped,
    keys,
    missing,
    render,
    statements,
)

KNOWN = statements()


def numbers(identifier: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", identifier))


def test_a_statement_has_an_identifier_somebody_it_binds_and_words() -> None:
    for one in KNOWN.values():
        assert re.fullmatch(r"MQTT-\d\.\d+\.\d+-\d+", one.identifier)
        assert one.binds in {"server", "client", "both"}
        assert one.says.endswith(".")
        assert "|" not in one.says + one.why


def test_statements_are_in_order_and_no_number_is_left_out_but_those_not_given() -> None:
    not_given = {("5.0", "MQTT-2.2.1-1")}
    for version, count in (("3.1.1", 141), ("5.0", 251)):
        there = [numbers(one.identifier) for one in KNOWN.values() if one.version == version]
        assert there == sorted(there)
        assert len(there) == count
        for identifier in there:
            name = f"MQTT-{'.'.join(map(str, identifier[:3]))}-{identifier[3] - 1}"
            assert identifier[3] == 1 or (version, name) in KNOWN.keys() | not_given


@pytest.mark.parametrize(
    ("identifier", "section"),
    [("MQTT-3.1.2-4", "3.1.2"), ("MQTT-3.1.0-1", "3.1"), ("MQTT-4.2.0-1", "4.2"), ("MQTT-6.0.0-1", "6.0")],
)
def test_the_section_is_in_the_identifier(identifier: str, section: str) -> None:
    assert Statement("5.0", identifier, "both", "").section == section


def test_a_mark_without_a_version_is_for_the_versions_that_have_the_statement() -> None:
    def named(*arguments: str, **options: int) -> list[tuple[str, str]]:
        return list(keys(pytest.mark.mqtt(*arguments, **options).mark, KNOWN))

    assert named("MQTT-3.1.0-1") == [("3.1.1", "MQTT-3.1.0-1"), ("5.0", "MQTT-3.1.0-1")]
    assert named("MQTT-3.1.0-1", version=3) == [("3.1.1", "MQTT-3.1.0-1")]
    assert named("MQTT-4.13.1-1") == [("5.0", "MQTT-4.13.1-1")]
    for arguments, options in (
        (("MQTT-9.9.9-1",), {}),
        (("MQTT-4.13.1-1",), {"version": 3}),
        (("MQTT-3.1.0-1",), {"version": 4}),
        (("MQTT-3.1.0-1",), {"versoin": 3}),
    ):
        with pytest.raises(UnknownStatement):
            named(*arguments, **options)


def test_what_has_neither_test_nor_reason_is_missing() -> None:
    rows = [
        Statement("5.0", "MQTT-1.1.1-1", "server", "Tested."),
        Statement("5.0", "MQTT-1.1.1-2", "server", "Not tested."),
        Statement("5.0", "MQTT-1.1.1-3", "server", "Excused.", "It is not there."),
        Statement("5.0", "MQTT-1.1.1-4", "client", "Somebody else's."),
    ]
    known = {(one.version, one.identifier): one for one in rows}
    shown = {("5.0", "MQTT-1.1.1-1"): [Shown("tests/test_x.py", "it is so")]}
    assert missing(known, shown) == [rows[1]]
    assert cells(shown["5.0", "MQTT-1.1.1-1"], rows[0]) == ["[it is so](../tests/test_x.py)"]
    assert [cells([], one)[0] for one in rows[1:]] == ["**no test yet**", "It is not there.", "binds clients only"]
    assert "4 statements, 3 of them bind a server. 1 have tests." in render(known, shown)


def test_a_sentence_cannot_break_the_table() -> None:
    assert escaped("a|b [c]") == "a\\|b \\[c\\]"


def test_the_page_is_made_of_the_marks_in_the_tests() -> None:
    """All marks of the project are read: one that names no statement fails here."""
    command = [sys.executable, "-m", "tests.conformance"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    page = ROOT / "docs/mqtt-conformance.md"
    assert page.read_text() == done.stdout, "run: python -m tests.conformance > docs/mqtt-conformance.md"
    assert "no test yet" not in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith("| MQTT-")]
    assert len(rows) == len(KNOWN)
    shown = {row for row in rows if "](../tests/broker/protocols/mqtt/test_framing.py)" in row}
    assert {row.split(" | ")[0] for row in shown} >= {"| MQTT-2.1.3-1", "| MQTT-2.2.2-1", "| MQTT-3.14.1-1"}
    # A mark on a test names the test, one on a case the case.
    (row,) = (row for row in rows if row.startswith("| MQTT-3.1.3-10 | client"))
    assert row.endswith(
        "| [this is refused (CONNECT 3.1.1: will topic no UTF-8)]"
        "(../tests/broker/protocols/mqtt/test_decoding.py) |"
    )
    (row,) = (row for row in rows if row.startswith("| MQTT-1.5.5-1 "))
    assert "[a remaining length in more bytes than it needs is malformed](" in row
