"""Routing rules as a part: the file that the setting `rules` names, read at the start and again on SIGHUP.

What reads and asks rules is imported where there are some, and not before. A file with an error keeps the rules that
are in force, as any setting with an error does: the log and the metric `rules_reloads_failed` say so.

Rules take some 0.2 ms each to be read and compiled. At a reload a thread does that, beside the loop; the whole of them
then takes the place of those before, between two messages.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fanlight_broker import logs
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.config import Settings
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.rules import COUNTERS
from fanlight_broker.core_part import Core
from fanlight_broker.net.clock import wall
from fanlight_broker.parts import Apply, Part, PartError, small_pieces

if TYPE_CHECKING:
    from fanlight_broker.core.rule_actions import RoutingRule
    from fanlight_broker.core.rule_set import RuleSet

log: Final = logs.get("rules")

HELP: Final = {
    "rules_reloads_failed": "Times SIGHUP found an error in the file of rules, and those in force stayed",
    "rules_in_force": "Routing rules in force",
}


class Ruling(Part):
    name = "rules"

    def __init__(self, settings: Settings, core: Core) -> None:
        self._settings, self._publishing = settings, core.broker.publishing
        self._in_force: RuleSet | None = None
        self._prepared: RuleSet | None = None
        self._failed = 0

    async def open(self) -> None:
        found = self._read(self._settings)
        if found is not None:
            self._use(found)

    async def prepare(self, settings: Settings) -> None:
        self._prepared = None
        self._prepared = await self._made(settings)

    async def _made(self, settings: Settings) -> "RuleSet | None":
        """Read in a thread. Raises PartError."""
        try:
            with small_pieces:
                return await asyncio.to_thread(self._read, settings)
        except PartError:
            self._failed += 1
            raise

    def reload(self, settings: Settings) -> Apply:
        found, self._prepared = self._prepared, None

        def apply() -> None:
            self._settings = settings
            if found is not None:
                self._use(found)

        return apply

    def _read(self, settings: Settings) -> "RuleSet | None":
        """The rules that the settings name; None if they name none, and did not before. Raises PartError."""
        if settings.rules is None and self._in_force is None:
            return None
        from fanlight_broker.core.rule_set import RuleSet
        from fanlight_broker.ruling.rule_file import RuleFileError, load

        rules: list[RoutingRule] = []
        if settings.rules is not None:
            try:
                rules = load(settings.rules, settings.limits, archive=self._settings.archive is not None)
            except RuleFileError as error:
                raise PartError("; ".join(error.problems)) from error
        try:
            return RuleSet(rules, settings.limits, wall)
        except OverflowError as error:
            raise PartError(f"{settings.rules}: the rules ask for too many different attributes") from error

    def _use(self, rules: "RuleSet") -> None:
        if self._in_force is not None:
            rules.count_from(self._in_force)
        self._in_force = rules
        self._publishing.use_rules(rules)
        log.info("rules_in_force", rules=len(rules.rules))

    def actions(self) -> Mapping[str, Callable[..., Any]]:
        return {"rules": lambda: self._in_force, "/rules/reload": self._reload_file}

    async def _reload_file(self) -> Mapping[str, Any]:
        """The file alone, and no other setting. Raises FanlightError."""
        if self._settings.rules is None:
            raise FanlightError("no rules are set: see the setting rules")
        try:
            found = await self._made(self._settings)
        except PartError as error:
            raise FanlightError(error.reason) from error
        assert found is not None
        self._use(found)
        return {"rules": len(found.rules)}

    def metrics(self) -> Sequence[MetricSource]:
        return [MetricSource(
            {**COUNTERS, **HELP},
            lambda: {**self._publishing.rules.counters(), "rules_reloads_failed": self._failed},
            lambda: {"rules_in_force": 0 if self._in_force is None else len(self._in_force.rules)},
            families=lambda: self._publishing.rules.families(),
        )]
