from collections.abc import Iterable
from typing import Any

from matchcore.rule import Rule
from matchcore.rule_table import RuleTable

__all__ = ["first_of_columns"]

def first_of_columns(
    table: RuleTable, facts: Any, rows: int, topics: Iterable[str | bytes] | None, syntax: str
) -> list[Rule | None] | None: ...
