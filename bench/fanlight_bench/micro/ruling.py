"""A publish on a topic with routing rules, without sockets: ns a publish, 1 subscriber to everything.

    none       no rules, the route in the cache: the compiled lane
    elsewhere  rules on other topics: the same, but for one comparison
    plain      no rules, every publish through Python
    false      a rule whose selector is not true of the message
    copy       a rule that copies the message, without a selector
    selected   a rule that copies it, with a selector that is true
    set        a rule that sets a header
    drop       a rule that drops it

Beside none: the others; there are 1,000 rules on other topics, too, wherever there are some.
"""

from collections.abc import Iterator

from fanlight_bench.micro.case import Case, Effort, Group
from fanlight_bench.micro.clients import PAYLOAD, frame
from fanlight_bench.micro.publish import MESSAGES, PublishSetup
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.rule_set import RuleSet
from fanlight_broker.ruling.rule_file import parse_rules

LIMITS = Limits(rules_max=2_000)
HERE = '[[rules]]\ntopic = "stock.*.AAPL"\n'
WAYS = {
    "none": None,
    "elsewhere": "",
    "false": HERE + 'where = "price > 1000"\nto = "other.$2"\n',
    "copy": HERE + 'to = "other.$2"\n',
    "selected": HERE + 'where = "price > 100"\nto = "other.$2"\n',
    "set": HERE + "set = { seen = true }\n",
    "drop": HERE + "drop = true\n",
}


def messages() -> Iterator[bytes]:
    batch = frame(3, None, "stock.nasdaq.AAPL", PAYLOAD, {"price": 120}) * MESSAGES
    while True:
        yield batch


def prepared(rules: str | None, others: int) -> PublishSetup:
    setup = PublishSetup(1, messages())
    if rules is not None:
        text = "".join(f'[[rules]]\ntopic = "other.{n}.*"\nwhere = "price > {n}"\ndrop = true\n' for n in range(others))
        found = parse_rules(text + rules, "rules.toml", LIMITS)
        setup.broker.publishing.use_rules(RuleSet(found, LIMITS))
    return setup


def groups(effort: Effort) -> Iterator[Group]:
    others = effort.sized(1_000, 10)
    ways = {name: prepared(rules, others) for name, rules in WAYS.items()}
    ways["plain"] = PublishSetup(1, messages(), plain=True)
    cases = [Case(name, MESSAGES, way.turn, () if name == "none" else ("none",)) for name, way in ways.items()]
    yield Group(f"1 subscriber, {others} rules on other topics", cases)
