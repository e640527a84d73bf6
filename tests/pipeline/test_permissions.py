"""The dry run of permissions over an archive, beside the plain interpreter of rules, message by message."""

import json
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_archive import MESSAGE, Writer
from fanlight_permissions.decisions import Asker
from fanlight_spark.snapshot import Snapshot, Subscription
from matchcore.kleene import Untyped
from tests.broker.permitting.reference import sees
from tests.without_spark.dry_runs import published, readable

CLIENTS = {"p7": "pump7", "p8": "pump8", "desk": "ann"}
USERS = {"pump7": frozenset({"devices"}), "pump8": frozenset({"devices"}), "ann": frozenset({"staff"})}
TOPICS = [
    ("site/pump7/temp", "mqtt"), ("site/pump8/temp", "mqtt"), ("site/pump8/alarm", "mqtt"), ("site.pump7.temp", "amqp"),
    ("news", "amqp"), ("$x/y", "mqtt"),
]  # fmt: skip
OLD = """
[[allow]]
publish = "site/#"
subscribe = "#"

[[allow]]
name = "news"
user = "ann"
publish = "news"
"""
NEW = """
[[deny]]
name = "no alarms"
group = "anonymous"
subscribe = "site/+/alarm"

[[deny]]
name = "hot"
publish = "site/#"
where = "payload.t > 90 AND price = 7"

[[deny]]
name = "asks"
protocol = "native"
request = "#"

[[deny]]
name = "keeps"
user = "pump8"
retain = "#"

[[allow]]
name = "own"
group = "devices"
publish = "site/%u/#"

[[allow]]
name = "cheap"
publish = "news"
where = "price < 5 OR $user = 'ann'"

[[allow]]
subscribe = ["site/#", "$x/#"]
"""
#: The same without `where`: then no message has to be looked at by itself.
PLAIN = NEW.replace('"site/#"\nwhere = "payload.t > 90 AND price = 7"', '"site/hot/#"').replace("where = \"price", "# ")
SNAPSHOT = Snapshot(
    (
        Subscription("site/+/alarm", "mqtt", client="wall"),
        Subscription("site/#", "mqtt", client="wall", session=True),
        Subscription("site.#", "amqp", client="w1", group="workers"),
        Subscription("#", "amqp", client="desk", user="ann"),
        Subscription("site/+/temp", "mqtt", client="d", user="ann"),
        Subscription("$x/y", "mqtt", client="d", user="ann"),
    )
)


def rows(count: int = 400) -> list[dict[str, Any]]:
    """Messages of four clients, and of the broker itself."""
    dice = random.Random(17)
    return [
        {
            "timestamp": number * 1_000_000, "topic": topic, "value": json.dumps({"t": dice.choice([20, 95])}).encode(),
            "headers": dice.choice([None, [{"key": "price", "value": dice.choice([b"7", b"3"])}]]),
            "client": dice.choice([*CLIENTS, "stranger", None]), "protocol": dice.choice(["mqtt", "native"]),
            "syntax": syntax, "qos": 1, "retain": dice.random() < 0.2,
            "content_type": dice.choice(["application/json", None]), "reply_topic": dice.choice(["r", None, None]),
            "correlation": None,
        }
        for number in range(count) for topic, syntax in [dice.choice(TOPICS)]
    ]  # fmt: skip


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("permissions") / "archive"
    writer = Writer(folder)
    given = rows()
    for at in (0, 150, 300):
        if at == 150:
            writer.roll()
        columns = {name: [row[name] for row in given[at : at + 150]] for name in MESSAGE.names}
        writer.append(pa.record_batch(columns, schema=MESSAGE))
    writer.close()
    return folder


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "old.toml").write_text(OLD)
    (tmp_path / "new.toml").write_text(NEW)
    (tmp_path / "plain.toml").write_text(PLAIN)
    lines = [{"client": client, "user": user} for client, user in CLIENTS.items()]
    (tmp_path / "clients.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "users.toml").write_text(
        "\n".join(f"[users.{user}]\ngroups = {json.dumps(sorted(groups))}" for user, groups in USERS.items())
    )
    given = [
        {name: getattr(each, name) for name in Subscription.__dataclass_fields__} for each in SNAPSHOT.subscriptions
    ]
    (tmp_path / "now.jsonl").write_text("\n".join(map(json.dumps, given)))
    return tmp_path


def asker_of(client: str, protocol: str) -> Asker:
    user = CLIENTS.get(client, "")
    return Asker(user, USERS.get(user, frozenset()), client, protocol=protocol)


def fields_of(row: Mapping[str, Any], user: str) -> dict[str, object]:
    found: dict[str, object] = {"$user": user} if user else {}
    if row["headers"]:
        found["price"] = Untyped(row["headers"][0]["value"].decode())
    if row["content_type"]:
        found["payload.t"] = json.loads(row["value"])["t"]
    return found


def expected(old: str | None, new: str) -> Counter[tuple[Any, ...]]:
    """Messages that are decided differently, by (user, action, topic, syntax, before, rule, after, rule)."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in rows():
        if row["client"] is None:
            continue
        asker = asker_of(row["client"], row["protocol"])
        how = row["topic"], row["syntax"], row["retain"], row["reply_topic"] is not None, fields_of(row, asker.user)
        before, after = published(old, asker, *how), published(new, asker, *how)
        if before[0] != after[0]:
            action = after[1] if before[0] else before[1]
            found[asker.user, action, *how[:2], before[0], before[2], after[0], after[2]] += 1
    return found


def expected_deliveries(old: str | None, new: str) -> Counter[tuple[Any, ...]]:
    """Of subscriptions that both rules allow, at least in part: (user, topic, syntax, before, after)."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row, each in [(row, each) for row in rows() for each in SNAPSHOT.subscriptions]:
        topic, syntax = row["topic"], row["syntax"]
        if sees(each.filter, each.syntax, topic, syntax):
            asker = Asker(each.user, USERS.get(each.user, frozenset()), each.client)
            before, after = (readable(text, asker, topic, syntax) for text in (old, new))
            if each.filter == "#" or each.group:  # refused as a whole: the new rules allow no filter so wide; a group
                after = False
            if before != after:
                found[each.user, topic, syntax, before, after] += 1
    return found


def run(spark: Any, archive: Path, files: Path, *words: str, rules: str = "new.toml") -> int:
    from fanlight_spark.jobs import permissions

    arguments = ["--archive", str(archive), "--rules", str(files / rules), *words]
    return permissions.main([word.replace("@", f"{files}/") for word in arguments], spark)


WHO = ("--clients", "@clients.jsonl", "--users", "@users.toml")


@pytest.mark.parametrize("old", [OLD, None])
@pytest.mark.parametrize("rules", ["new.toml", "plain.toml"])
def test_messages_are_counted_as_they_are_decided_one_by_one(
    spark: Any, archive: Path, files: Path, capsys: Any, old: str | None, rules: str
) -> None:
    against = ("--against", "@old.toml") if old is not None else ()
    assert run(spark, archive, files, *against, *WHO, "--json", "--top", "1000", rules=rules) == 1
    said = json.loads(capsys.readouterr().out)
    wanted = expected(old, NEW if rules == "new.toml" else PLAIN)
    found = {tuple(row.values())[:-2]: row["messages"] for row in said["messages"]["first"]}
    assert found == wanted
    assert len({key[1] for key in wanted}) > 2  # publish, retain, request
    theirs = [row for row in rows() if row["client"] is not None]
    assert said["facts"] == {
        "messages": len(theirs), "unknown": sum(row["client"] == "stranger" for row in theirs),
        "denied_now": sum(count for key, count in wanted.items() if not key[6]),
        "allowed_now": sum(count for key, count in wanted.items() if key[6]),
        "subscriptions": 0, "subscriptions_differ": 0,
    }  # fmt: skip
    assert said["messages"]["rows"] == len(wanted)
    assert "of clients that nothing names" in said["notes"][0]


def test_subscriptions_and_what_they_get_are_compared(
    spark: Any, archive: Path, files: Path, tmp_path: Path, capsys: Any
) -> None:
    words = ("--against", "@old.toml", *WHO, "--subscriptions", "@now.jsonl", "--out", str(tmp_path / "out"))
    assert run(spark, archive, files, *words, "--top", "2") == 1
    shown = capsys.readouterr().out
    assert "subscriptions: 6 decided, 4 differently" in shown
    assert "the first 2 of " in shown
    differ = spark.read.parquet(str(tmp_path / "out" / "subscriptions")).collect()
    assert {(r.client, r.filter, r.before, r.after, r.rule_after, r.denied_after) for r in differ} == {
        ("wall", "site/+/alarm", "all", "none", "no alarms", ""),
        ("wall", "site/#", "all", "partly", "line 32", "no alarms"),
        ("w1", "site.#", "all", "none", "no alarms", ""), ("desk", "#", "all", "none", "", ""),
    }  # fmt: skip
    got: Counter[tuple[Any, ...]] = Counter()
    for row in spark.read.parquet(str(tmp_path / "out" / "deliveries")).collect():
        assert row.action == "subscribe"
        got[row.user, row.topic, row.syntax, row.before, row.after] += row.messages
    assert got == expected_deliveries(OLD, NEW)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Deliveries that are decided differently" in page
    assert "no alarms" in page


def test_the_exit_code_is_for_ci(spark: Any, archive: Path, files: Path, capsys: Any) -> None:
    """0 no decision differs, 1 one does, 2 a mistake."""
    (files / "all.csv").write_text("everything\n#\nsite/#\n")
    (files / "copy.toml").write_text(OLD.replace('name = "news"', 'name = "other"'))  # by another rule: alike
    assert run(spark, archive, files, "--against", "@old.toml", *WHO, rules="copy.toml") == 0
    assert run(spark, archive, files, "--subscriptions", "@now.jsonl", "--as", "%c", rules="all.csv") == 0
    assert "0 denied that were allowed" in capsys.readouterr().out
    assert run(spark, archive, files, "--against", "@all.csv", *WHO, "--filter", "news", "--levels", "1") == 1
    (files / "wrong.toml").write_text("[[allow]]\npublsh = 1\n")
    for words, said in [
        (("--against", "@wrong.toml"), "line 1: there is no 'publsh'"), (("--against", "@none"), "cannot be read"),
        (("--group", "g"), "--group is a group of the user of --as"), (("--clients", "@none"), "No such file"),
        (("--strict", *WHO), "messages are of clients that nothing names"), (("--users", "@now.jsonl"), "now.jsonl"),
        (("--out", str(archive)), "take another folder for results"),
        (("--archive", "fanlight://127.0.0.1:1"), "a broker does not say who published"),
    ]:  # fmt: skip
        assert run(spark, archive, files, *words) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
    for words in (("--nothing",), ("--levels", "-1"), ("--subscribe-partly", "some"), ("INPUT",)):
        with pytest.raises(SystemExit) as ended:
            run(spark, archive, files, *words)
        assert ended.value.code == 2


def test_topics_are_counted_by_their_first_words(spark: Any, archive: Path, files: Path, capsys: Any) -> None:
    assert run(spark, archive, files, "--against", "@old.toml", *WHO, "--json", "--levels", "2", "--top", "99") == 1
    wanted: Counter[tuple[Any, ...]] = Counter()
    for (user, action, topic, syntax, *rest), count in expected(OLD, NEW).items():
        separator = "/" if syntax == "mqtt" else "."
        words = topic.split(separator)
        cut = topic if len(words) <= 2 else separator.join([*words[:2], "#"])
        wanted[user, action, cut, syntax, *rest] += count
    said = json.loads(capsys.readouterr().out)["messages"]["first"]
    assert {tuple(row.values())[:-2]: row["messages"] for row in said} == wanted


def test_a_terminal_is_shown_no_control_characters(spark: Any, files: Path, capsys: Any, tmp_path: Path) -> None:
    row = {**rows(1)[0], "topic": "a\x1b[2J", "client": "p7"}
    writer = Writer(tmp_path / "hostile")
    writer.append(pa.record_batch({name: [row[name]] for name in MESSAGE.names}, schema=MESSAGE))
    writer.close()
    assert run(spark, tmp_path / "hostile", files, *WHO) == 1
    shown = capsys.readouterr().out
    assert "a\ufffd[2J" in shown
    assert "\x1b" not in shown


def test_rules_about_what_an_archive_does_not_have_are_named(
    spark: Any, archive: Path, files: Path, capsys: Any
) -> None:
    (files / "office.toml").write_text('[[allow]]\naddress = "10.0.0.0/8"\neverything = "#"\n')
    assert run(spark, archive, files, "--filter", "news", rules="office.toml") == 1
    assert "note: rules ask for address, which an archive does not have" in capsys.readouterr().out
    (files / "clients.jsonl").write_text('{"client": "p7", "address": "10.1.1.1"}\n')
    assert run(spark, archive, files, "--filter", "news", "--json", *WHO, rules="office.toml") == 1
    facts = json.loads(capsys.readouterr().out)["facts"]
    mine = sum(row["client"] == "p7" and row["topic"] == "news" for row in rows())
    assert facts["denied_now"] == facts["messages"] - mine


def test_the_help_says_the_exit_codes(capsys: Any) -> None:
    from fanlight_spark.jobs import permissions

    with pytest.raises(SystemExit) as ended:
        permissions.main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "exit codes: 0 nothing is decided differently, 1 something is" in shown
    assert "--against" in shown
