"""Figures for people: a table for each group, and what changed between two runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEAST = 0.08  # of a change that counts: on a quiet machine two processes differ by half of it
BETTER, WORSE, SAME = "faster", "SLOWER", "within noise"


def group(bench: str, name: str, figures: Mapping[str, Any]) -> list[str]:
    """A line for each case; what is a list in JSON is not in it."""
    facts = {fact: value for fact, value in figures["facts"].items() if not isinstance(value, list)}
    lines = [f"{bench}: {name}" + "".join(f"   {fact} {_value(value)}" for fact, value in facts.items())]
    for case, found in figures["cases"].items():
        beside = "   ".join(f"{ratio:,.3g} x {other}" for other, ratio in found["beside"].items() if ratio)
        lines.append(f"  {case:<22} {_ns(found['ns']):>10}  ±{found['spread']:<6.1%} {beside}".rstrip())
    return lines


def _ns(value: float) -> str:
    if value < 10_000:
        return f"{value:,.1f} ns"
    return f"{value / 1e3:,.1f} µs" if value < 10_000_000 else f"{value / 1e6:,.1f} ms"


def _value(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


@dataclass(frozen=True, slots=True)
class CaseChange:
    """One case in two runs. Where it has a baseline the ratio to that is compared, else nanoseconds."""

    case: str
    unit: str
    before: float
    now: float
    noise: float  # relative

    @property
    def change(self) -> float:
        """How much faster, relative; negative is slower."""
        return self.before / self.now - 1

    @property
    def verdict(self) -> str:
        if abs(self.change) <= self.noise:
            return SAME
        return BETTER if self.change > 0 else WORSE


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[CaseChange]:
    """A change for each case that both runs have. ValueError: they have none in common."""
    found = []
    for bench, group, case, figures in _cases(now):
        earlier = before["benches"].get(bench, {}).get(group, {}).get("cases", {}).get(case)
        if earlier is None:
            continue
        noise = max(LEAST, figures["spread"] + earlier["spread"])
        unit, sizes = "ns", (earlier["ns"], figures["ns"])
        for name, ratio in figures["beside"].items():
            if ratio and earlier["beside"].get(name):
                unit, sizes = f"x {name}", (earlier["beside"][name], ratio)
                break
        found.append(CaseChange(f"{bench}: {group}: {case}", unit, *sizes, noise))
    if not found:
        raise ValueError("no case is in both runs")
    return found


def _cases(report: Mapping[str, Any]) -> list[tuple[str, str, str, Mapping[str, Any]]]:
    return [
        (bench, group, case, figures)
        for bench, groups in report["benches"].items()
        for group, found in groups.items()
        for case, figures in found["cases"].items()
    ]


def compared(changes: Sequence[CaseChange]) -> list[str]:
    """A line for each change, the largest first."""
    width = max(len(one.case) for one in changes)
    lines = [f"{'':<{width}}  {'before':>9} {'now':>9}  {'':<16} {'faster by':>9} {'noise':>7}"]
    for one in sorted(changes, key=lambda one: -abs(one.change)):
        sizes = f"{one.before:>9,.4g} {one.now:>9,.4g}  {one.unit:<16} {one.change:>+9.1%} {one.noise:>7.1%}"
        lines.append(f"{one.case:<{width}}  {sizes}  {one.verdict}")
    return lines
