"""The writer of reports: parts of a page, tables and numbers."""

from pathlib import Path

import pytest

from fanlight_bench import reporting

PAGE = "before\n<!-- made: one -->\nold\n<!-- end -->\nbetween\n<!-- made: two-2 -->\n<!-- end -->\nbehind\n"


def test_parts_are_replaced_and_the_rest_stays() -> None:
    made = reporting.rewritten(PAGE, lambda name: [name.upper(), ""])
    assert made == (
        "before\n<!-- made: one -->\nONE\n\n<!-- end -->\n"
        "between\n<!-- made: two-2 -->\nTWO-2\n\n<!-- end -->\nbehind\n"
    )
    assert reporting.rewritten(made, lambda name: [name.upper(), ""]) == made


def test_a_part_for_which_nothing_is_made_stays() -> None:
    assert reporting.rewritten(PAGE, lambda name: None) == PAGE


def test_an_unknown_part_is_an_error() -> None:
    with pytest.raises(KeyError, match="one"):
        reporting.rewritten(PAGE, {"two-2": ["x"]}.__getitem__)


def test_a_file_is_rewritten_once(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    assert reporting.rewrite(path, lambda text: text.replace("old", "µs"))
    assert not reporting.rewrite(path, lambda text: text.replace("old", "µs"))
    assert "µs" in path.read_text(encoding="utf-8")


def test_prose_has_at_most_120_columns_and_no_broken_word() -> None:
    text = " ".join(["Linux 6.18-fc-v595", "x" * 130, *["word"] * 60])
    lines = reporting.paragraph(text)
    assert " ".join(lines) == text
    assert [line for line in lines if len(line) > 120] == ["x" * 130]


def test_tables() -> None:
    table = [("name", "ns", "said"), ("a", "7", "slow"), ("longer", "1,000", "")]
    assert reporting.markdown(table)[:2] == ["| name | ns | said |", "|---|---:|---:|"]
    assert reporting.markdown(table, left=0)[1] == "|---:|---:|---:|"
    assert reporting.aligned(table) == ["name       ns  said", "a           7  slow", "longer  1,000"]


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [(None, 3, ""), (0.12345, 3, "0.123"), (99.94, 3, "99.9"), (100.4, 3, "100"), (12_345.6, 3, "12,346"),
     (9.876, 2, "9.9"), (10.4, 2, "10"), (-250.0, 3, "-250")],
)  # fmt: skip
def test_numbers(value: float | None, digits: int, shown: str) -> None:
    assert reporting.number(value, digits) == shown


def test_units_and_bars() -> None:
    assert reporting.with_unit(2.5, "x") == "2.5x"
    assert reporting.with_unit(1_000, "/s") == "1,000/s"
    assert reporting.with_unit(2.5, "µs") == "2.5 µs"
    assert reporting.limit(3, "µs", at_most=True) == "≤ 3 µs"
    assert reporting.limit(3, "x", at_most=False) == "≥ 3x"
    assert (reporting.share(0.256), reporting.share(None)) == ("26%", "")


def test_a_machine_in_a_line() -> None:
    about = {"processor": "", "machine": "x86_64", "processors": 2, "system": "Linux", "python": "3.11.7"}
    assert reporting.machine(about) == "x86_64, 2 processors, Linux, CPython 3.11.7"
    more = {**about, "processor": "A", "memory_bytes": 24 << 30}
    assert reporting.machine(more) == "A, 2 processors, 24 GiB, Linux, CPython 3.11.7"
