"""The file of rules: what its keys mean, and what is said of one that cannot be put in force."""

from pathlib import Path

import pytest

from fanlight_broker.core.limits import Limits
from fanlight_broker.core.rule_actions import ActionKind, RoutingRule
from fanlight_broker.core.rule_set import RuleSet
from fanlight_broker.ruling.rule_file import FILE_BYTES_MAX, RuleFileError, load, parse_rules, read

LIMITS = Limits(rules_max=5, delay_seconds_max=100)

TOML = """\
# a comment
[[rules]]
name = "copy"
topic = "orders.*.new"
where = "price > 100"
salience = 10
to = "stock.$2.$1"

[[rules]]
topic = "mqtt:site/+/temp"
set = { region = "eu", n = 1, ok = true, x = 0.5 }

  [[ rules ]]
replace = "mqtt:a/$0"
where = { region = ["eu", "us"] }
drop = false

[[rules]]
delay = "1m"
[[rules]]
priority = 7
salience = -0.5
"""
CSV = """\
name, salience, topic,         where,  region,  price,      to,          drop, set
copy, 10,       orders.*.new,  ,       ,        >100,       stock.$2.$1, ,
,     2,        mqtt:a/#,      "n = 1","{eu,us}",,          ,            yes,
,     ,         ,              ,       ,        "[10,20)",  ,            ,     a=b; c=1
"""


def rules_of(text: str, **options: bool) -> list[RoutingRule]:
    return parse_rules(text, "rules.toml", LIMITS, **options)


def problems(text: str, **options: bool) -> list[str]:
    with pytest.raises(RuleFileError) as caught:
        rules_of(text, **options)
    return caught.value.problems


def test_toml() -> None:
    copy, set_, replace, delay, priority = rules_of(TOML)
    assert (copy.name, copy.label, copy.place, copy.salience) == ("copy", "copy", "line 2", 10)
    assert (copy.filter, copy.syntax, str(copy.selector), copy.kind) == (
        b"orders.*.new", "amqp", "price > 100", ActionKind.COPY,
    )
    assert str(copy.template) == "stock.$2.$1"
    assert (set_.filter, set_.syntax, set_.place, set_.label) == (b"site/+/temp", "mqtt", "line 9", "rule 2")
    assert set_.headers == (("region", "eu"), ("n", 1), ("ok", True), ("x", 0.5))
    assert (replace.kind, replace.filter, replace.place) == (ActionKind.REPLACE, b"#", "line 13")
    assert str(replace.selector) == "region IN ('eu', 'us')"
    assert (delay.kind, delay.seconds) == (ActionKind.DELAY, 60.0)
    assert (priority.headers, priority.salience) == ((("priority", 7),), -0.5)


def test_csv_has_conditions_in_its_other_columns() -> None:
    copy, drop, set_ = parse_rules(CSV, "rules.csv", LIMITS, is_csv=True)
    assert (copy.name, copy.salience, str(copy.selector), copy.place) == ("copy", 10, "price > 100", "line 2")
    assert (drop.kind, drop.filter, drop.syntax) == (ActionKind.DROP, b"a/#", "mqtt")
    assert str(drop.selector) == "n = 1 AND region IN ('eu', 'us')"
    assert set_.headers == (("a", "b"), ("c", "1"))
    assert str(set_.selector) == "price >= 10 AND price < 20"


def test_no_rules_are_no_error() -> None:
    assert rules_of("") == parse_rules("", "rules.csv", LIMITS, is_csv=True) == []


WRONG = {
    'drop = true\ntopic = "a..#.b"\nto = "x"': "one action, of to, replace, set, priority, drop, archive, delay",
    'topic = "a"': "this one has none",
    'drop = "perhaps"': "drop: write true or false",
    'topic = "mqtt:a#"\ndrop = true': "byte 1",
    'topic = 1\ndrop = true': "topic: write it as a text",
    'drop = true\nwhere = "price >> 1"': "byte 7",
    'drop = true\nwhere = "a + b > 1"': "byte 2",
    'drop = true\nwhere = { a = 1 }': "where",
    'drop = true\nsalience = "first"': "salience",
    'drop = true\nslience = 1': "there is no 'slience' in a rule; did you mean salience?",
    'drop = true\ntopic = "$SYS.#"': "topic: rules do not act on topics that begin with $",
    f'to = "{"a." * 200}a"': "to: the topic is longer than topic_words_max",
    "drop = true\nsalience = nan": "salience: ",
    'drop = true\nname = ""': "name: write it as a text",
    'drop = true\nname = "a\\u0000"': "printable",
    'topic = "a.b"\nto = "x.$3"': "to: $3, and its topics have 2 words",
    'to = "x.*"': "wildcard",
    'to = "$SYS.x"': "whole word",
    'replace = ""': "replace: write it as a text",
    'set = "a"': "name=value",
    "set = {}": "a table of headers",
    'set = { "$a" = 1 }': "no name of a header",
    "set = { a = [1] }": "a header is a text, a number",
    "set = { a = nan }": "a header is a text, a number",
    "set = { a = 9223372036854775808 }": "a header is a text, a number",
    "priority = 10": "priority: is 0 to 9",
    'priority = "high"': "priority: is not a number",
    'delay = "2m"': "delay: is above 0 and at most 100s (delay_seconds_max)",
    "delay = 0": "delay: is above 0",
    'delay = "soon"': "delay: is not a time",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_with_a_rule_is_said_with_its_place(text: str) -> None:
    (problem,) = problems(f'[[rules]]\ndrop = true\n\n[[rules]]\n{text}\n')
    assert problem.startswith("rules.toml, line 4, rule "), problem
    assert WRONG[text] in problem, problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[rules]]\nx = y\n", "at line 2"), ("rules = [1]", "not a list"),
        ("rules = 1", "`rules` is not a list of tables"),
        ("[rule]\nx = 1", "nothing but [[rules]] in a file of rules; found 'rule'"),
        ("[[rules]]\ndrop = true\n" * 6, "6 rules; at most 5 (rules_max)"),
        ("[[rules]]\narchive = true\n", "this broker has no archive"),
        ('[[rules]]\nname = "a"\ndrop = true\n' * 2, "the rule of line 1 has the same name"),
    ],
)
def test_what_is_wrong_with_a_file(text: str, said: str) -> None:
    (problem,) = problems(text, archive=False)
    assert problem.startswith("rules.toml")
    assert said in problem


def test_every_problem_of_a_file_is_listed_and_named() -> None:
    text = '[[rules]]\nname = "first"\n[[rules]]\ndrop = true\n[[rules]]\nwhere = "a >"\ndrop = true\n'
    first, third = problems(text)
    assert first.startswith("rules.toml, line 1, rule 'first': ")
    assert third.startswith("rules.toml, line 5, rule 3: ")
    assert "byte 3" in third


def test_text_of_several_lines_that_looks_like_a_rule_costs_the_lines_alone() -> None:
    (problem,) = problems('[[rules]]\nwhere = """\n[[rules]]\n"""\ndrop = true\n')
    assert problem.startswith("rules.toml, rule 1: where: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,a\n", "same name"), ("a,,b\n", "no name"), ("drop\nyes,no\n", "line 2 has 2 cells"),
        ('drop\n"yes\n', "rules.csv"), ("drop,where\nyes,a >\n", "rules.csv, line 2, rule 1: where: "),
        ('drop,region\nyes,"{eu"\n,"{a,b}"\n', "line 3"), ("drop,price\nyes,[1\nyes,\"[a,1]\"\n", "line 3"),
    ],
)
def test_what_is_wrong_with_a_table(text: str, said: str) -> None:
    with pytest.raises(RuleFileError) as caught:
        parse_rules(text, "rules.csv", LIMITS, is_csv=True)
    assert said in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    def problem(path: Path) -> str:
        with pytest.raises(RuleFileError) as caught:
            read(path, LIMITS, archive=False)
        (found,) = caught.value.problems
        return found

    assert problem(tmp_path / "none.toml").endswith("cannot be read: No such file or directory")
    broken = tmp_path / "broken.toml"
    broken.write_bytes(b"# a\n\xff")
    assert "line 2: is not UTF-8 (at byte 4)" in problem(broken)
    with broken.open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)
    assert "longer than" in problem(broken)
    table = tmp_path / "rules.CSV"
    table.write_text("drop,topic\nyes,a\n")
    assert len(read(table, LIMITS, archive=False)) == 1


def test_a_file_whose_rules_lead_in_a_circle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('[[rules]]\nname = "all"\nto = "audit.$0"\n')
    with pytest.raises(RuleFileError, match=r"in a circle: all \(line 1, salience 0\) -> all"):
        load(path, LIMITS, archive=False)


def test_as_many_rules_as_may_be_are_put_in_force() -> None:
    limits = Limits()
    text = [f'[[rules]]\ntopic = "a.{n}.*"\nwhere = "x > {n}"\nto = "b.{n}.$3"\n' for n in range(limits.rules_max)]
    rules = parse_rules("".join(text), "rules.toml", limits)
    plan = RuleSet(rules, limits).planned(b"a.900.z", "amqp", {"x": 901})
    assert [each.topic for each in plan.outputs] == [b"a.900.z", b"b.900.z"]
    with pytest.raises(RuleFileError, match="rules_max"):
        parse_rules("".join([*text, text[0]]), "rules.toml", limits)
