"""A large file of permissions is read in pieces, and leaves the garbage collector nothing to go through."""

import gc
import random
from pathlib import Path
from unittest.mock import patch

import pytest

from fanlight_broker.core.limits import Limits
from fanlight_broker.permitting.permission_reading import read_permissions
from fanlight_permissions import table, toml_rules
from fanlight_permissions.permission_file import parse_permissions
from fanlight_permissions.table import in_order

LIMITS = Limits(permissions_max=10_000)
SHAPES = {
    "users": ("user,publish", "u{0},site/{0}/#"), "beginnings": ("client,publish", "pump{0}-*,site/{0}/#"),
    "conditions": ("user,publish,where", "u{0},site/{0}/#,price > {0} and (a = 1 or not b in ('x'))"),
    "names": ("user,publish,name", "u{0},site/{0}/#,rule {0}"),
}


def references(path: Path, effect: str, shape: str, rules: int) -> int:
    """That the collector finds in what the table of a file has brought."""
    columns, row = SHAPES[shape]
    path.write_text(f"effect,{columns}\n" + "".join(f"{effect},{row.format(n)}\n" for n in range(rules)))
    gc.collect()
    before = {id(each) for each in gc.get_objects()}
    made, _ = read_permissions(path, LIMITS, lambda: None)
    found = [each for each in gc.get_objects() if id(each) not in before and each is not before]
    count = sum(len(gc.get_referents(each)) for each in found)
    assert len(made) == rules
    return count


@pytest.mark.parametrize(
    ("effect", "shape"), [("allow", "users"), ("deny", "beginnings"), ("allow", "conditions"), ("allow", "names")]
)
def test_rules_are_nothing_to_the_garbage_collector(tmp_path: Path, effect: str, shape: str) -> None:
    few, many = (references(tmp_path / "p.csv", effect, shape, rules) for rules in (1_500, 3_000))
    assert many - few < 750  # 1,500 rules more


def test_headers_are_found_wherever_a_piece_ends() -> None:
    def read() -> list[tuple[int, bool, object]]:
        return [(rule.line, rule.allow, rule.who) for rule in parse_permissions(text, "p", LIMITS).rules]

    text = "".join(
        f'[[{"allow" if n % 3 else "deny"}]]{" # of all" * (n % 2)}\nuser = "u{n}"\npublish = "a"\n{chr(10) * (n % 2)}'
        for n in range(40)
    )
    whole, lines = read(), text.splitlines()
    assert [lines[line - 1][2] for line, _, _ in whole] == ["a" if n % 3 else "d" for n in range(40)]
    assert [allow for _, allow, _ in whole] == [n % 3 != 0 for n in range(40)]
    for size in (1, 7, 100):
        with patch.object(toml_rules, "PIECE", size):
            assert read() == whole


def test_rules_are_sorted_in_runs_as_they_are_at_once() -> None:
    dice = random.Random(17)
    text = "effect,user,publish,salience\n" + "".join(
        f"allow,u{n},a,{dice.choice([0, 3, -2.5, 7])}\n" for n in range(50)
    )
    rules = parse_permissions(text, "p", LIMITS, is_csv=True).rules
    with patch.object(table, "RUN", 4):
        assert in_order(rules) == sorted(rules, key=lambda rule: (rule.salience, rule.number))
