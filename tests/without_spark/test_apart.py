"""Tests that draw with hypothesis run outside Spark's process.

Spark's threads move Python's global `random`, which hypothesis watches while it draws: it then reports a flaky test.
So tests/pipeline, where all tests share one Spark, holds no property test. Those of the pipeline are in this folder,
and nothing here starts Spark.
"""

import ast
from pathlib import Path

import pytest

from scripts.run_checks import check_of

TESTS = Path(__file__).resolve().parent.parent


def imports_of(path: Path) -> set[str]:
    """The packages that a file imports, at any depth of its code."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize(("folder", "other"), [("pipeline", "hypothesis"), ("without_spark", "pyspark")])
def test_no_property_test_shares_a_process_with_spark(folder: str, other: str) -> None:
    files = sorted((TESTS / folder).rglob("*.py"))
    assert files
    assert [path.name for path in files if other in imports_of(path)] == []


def test_the_tests_without_spark_run_beside_all_others_and_not_beside_spark() -> None:
    assert (check_of("tests/without_spark"), check_of("tests/pipeline")) == ("tests", "spark")
