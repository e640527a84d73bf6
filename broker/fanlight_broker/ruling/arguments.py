"""`fanlightd rules`: the arguments of its commands, and what their help says. What they do is in command.py and
compare_command.py."""

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from fanlight_broker.core.limits import Limits
from fanlight_broker.parsing import Parser, commands_below

CHECK: Final = """\
Check a file of routing rules without a broker: what is wrong with it, which rules never act because a more salient one
takes away all of their messages, and which rules may act on one message. With --topic, what would happen to a message.

examples:
  fanlightd rules check rules.toml
  fanlightd rules check rules.toml --topic orders.eu.new --fields '{"price": 120}'

exit codes: 0 the rules can be put in force, 1 they cannot, 2 wrong arguments or settings
"""
COMPARE: Final = """\
Try new rules on what was archived, before they are put in force: which messages would go elsewhere, be lost, be copied
or have other headers than by the old rules, by topic, rule and subscriber, and which rules act on no message. Nothing
is changed, and no broker is asked.

examples:
  fanlightd rules compare archive --new new.toml --old rules.toml --html report.html
  fanlightd rules compare archive --new new.toml --subscriptions now.jsonl --from 2026-11-01

exit codes: 0 every message goes where it went, 1 some would not, 2 wrong arguments, settings or files
"""


def add_commands(
    parser: Parser, help_format: Any, add_config: Callable[[Parser], None],
    limits: Callable[[argparse.Namespace], Limits],
) -> None:  # fmt: skip
    command = commands_below(parser, help_format)

    def check(arguments: argparse.Namespace) -> int:
        from fanlight_broker.ruling.command import check_rules

        of = {"topic": arguments.topic, "fields": arguments.fields, "as_json": arguments.json}
        return check_rules(arguments.file, limits(arguments), **of)

    def compare(arguments: argparse.Namespace) -> int:
        from fanlight_broker.ruling.compare_command import CompareOptions, compare_rules

        asked = {name: getattr(arguments, name) for name in CompareOptions._fields}
        return compare_rules(CompareOptions(**asked), limits(arguments))

    each = command("check", check, "say what is wrong with a file of rules, and try it on a message", CHECK)
    each.add_argument("file", type=Path, metavar="FILE", help="TOML, or CSV if its name ends with .csv")
    each.add_argument("--topic", help="what would happen to a message on it; MQTT's after mqtt:")
    each.add_argument("--fields", metavar="JSON", help='of that message: {"price": 120, "payload.a": 1, "$qos": 1}')
    each.add_argument("--json", action="store_true", help="print what was found as one JSON object")
    add_config(each)
    each = command("compare", compare, "what new rules would do differently with what was archived", COMPARE)
    add = each.add_argument
    add("archived", type=Path, metavar="ARCHIVE", help="the archive's folder")
    add("--new", type=Path, required=True, metavar="FILE", help="the new rules: TOML, or CSV (*.csv)")
    add("--old", type=Path, metavar="FILE", help="those before; without it there were none")
    about = "a snapshot (docs/snapshots.md): says who would lose or gain what"
    add("--subscriptions", type=Path, metavar="FILE", help=about)
    add("--from", dest="since", type=_time, metavar="TIME", help="only messages from then on, as 2026-11-01 (UTC)")
    add("--until", type=_time, metavar="TIME", help="only messages before it")
    add("--html", type=Path, metavar="FILE", help="write a report there")
    add("--top", type=_count, default=20, metavar="N", help="rows that are shown (20)")
    add("--json", dest="as_json", action="store_true", help="print all rows as one JSON object")
    add_config(each)


def _time(words: str) -> datetime:
    """UTC if it has no zone. Raises ValueError, which argparse turns into words."""
    at = datetime.fromisoformat(words)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _count(words: str) -> int:
    if (number := int(words)) < 1:
        raise argparse.ArgumentTypeError(f"{words}: 1 or more is wanted")
    return number
