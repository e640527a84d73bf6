"""What permissions alone cost, beside their bars: a cold decision, a reload, its longest turn, the bytes of a rule.

The figures are of `micro permitting` (permitting.py): between the turns of a case the rules are read as a plain list,
which leaves nothing of the table in the processor's caches, so that decisions are cold.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from fanlight_bench.micro import permitting
from fanlight_bench.micro.case import Effort, measured

DECISION_US: Final = 1.5
RELOAD_SECONDS: Final = 0.5
TURN_MS: Final = 5.0
RULE_BYTES: Final = 200


def rows(rules: int, turns: int) -> Iterator[dict[str, Any]]:
    """A row for each shape of a file."""
    with tempfile.TemporaryDirectory(prefix="fanlight-permissions-") as folder:
        for shape in permitting.WORKLOADS:
            group = permitting.measure(shape, rules, Path(folder))
            yield row(shape, rules, measured(group, Effort(turns=turns)))


def row(shape: str, rules: int, found: dict[str, Any]) -> dict[str, Any]:
    """The figures of one shape beside the bars."""
    cases, facts = found["cases"], found["facts"]
    decision, reload = cases["permits"]["ns"] / 1e3, cases["reload"]["ns"] * rules / 1e9
    return {
        "shape": shape, "rules": rules, "decision_us": round(decision, 3),
        "decision_least_us": round(cases["permits"]["least_ns"] / 1e3, 3),
        "with_rule_us": round(cases["decide"]["ns"] / 1e3, 3), "reload_seconds": round(reload, 3),
        "turn_ms": facts["held_ms"], "wait_ms": facts["waits_ms"], "bytes_per_rule": facts["bytes_per_rule"],
        "met": {
            "decision": decision <= DECISION_US, "reload": reload <= RELOAD_SECONDS,
            "turn": facts["held_ms"] <= TURN_MS, "bytes": facts["bytes_per_rule"] <= RULE_BYTES,
        },
    }  # fmt: skip
