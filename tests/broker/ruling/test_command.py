"""`fanlightd rules check`, as an operator runs it."""

import json
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from fanlight_bench.launch import fanlightd
from fanlight_broker.cli import main

RULES = """\
[[rules]]
name = "dear"
topic = "orders.*.new"
where = "price > 100"
to = "stock.$2.$1"

[[rules]]
name = "stop"
topic = "orders.#"
where = "price > 50"
salience = -1
drop = true

[[rules]]
name = "keep"
topic = "stock.#"
set = { seen = true }
"""


def run(*words: object) -> tuple[int, str, str]:
    """Exit code, standard output and error."""
    with redirect_stdout(StringIO()) as stdout, redirect_stderr(StringIO()) as stderr:
        try:
            code = main([*map(str, words)])
        except SystemExit as end:
            code = int(end.code or 0)
    return code, stdout.getvalue(), stderr.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rules.toml"
    path.write_text(RULES)
    return path


def test_a_sound_file_and_what_is_odd_about_it(file: Path) -> None:
    code, out, error = run("rules", "check", file)
    assert (code, error) == (0, "")
    assert out.splitlines() == [
        f"{file}: 3 rules, sound",
        "  never acts: dear (line 1, salience 0): stop (line 7, salience -1) takes away all of its messages",
        "  both may act on one message: stop (line 7, salience -1), then dear (line 1, salience 0), "
        'such as {"price": 101}',
    ]


@pytest.mark.parametrize(
    ("topic", "fields", "expected"),
    [
        ("orders.eu.new", {"price": 120}, [
            "stop (line 7), on orders.eu.new: drops it", "routed to nobody: it is dropped",
        ]),
        ("mqtt:stock/eu", None, [
            "keep (line 14), on stock/eu: sets seen = True", 'routed to stock/eu, headers {"seen": true}',
        ]),
        ("orders.eu.new", {"price": 1}, ["no rule acts on it", "routed to orders.eu.new"]),
    ],
)  # fmt: skip
def test_what_would_happen_to_a_message(
    file: Path, topic: str, fields: dict[str, object] | None, expected: list[str]
) -> None:
    more = ["--fields", json.dumps(fields)] if fields is not None else []
    code, out, _ = run("rules", "check", file, "--topic", topic, *more)
    assert code == 0
    assert out.split("\n\n")[1].splitlines() == expected


def test_the_same_as_json(file: Path) -> None:
    code, out, _ = run("rules", "check", file, "--topic", "stock.eu", "--json")
    assert code == 0
    view = json.loads(out)
    assert (view["file"], view["rules"], view["problems"]) == (str(file), 3, [])
    assert view["shadowed"] == [{"rule": "dear", "by": "stop"}]
    assert view["overlaps"] == [{"first": "stop", "second": "dear", "fields": {"price": 101}}]
    (rule,) = view["message"]["rules"]
    assert (rule["rule"], rule["filter"], rule["does"]) == ("keep", "stock.#", "sets seen = True")
    assert view["message"]["routed"] == [
        {"topic": "stock.eu", "headers": {"seen": True}, "archived": False, "delay_seconds": None}
    ]


def test_delays_copies_and_the_archive_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text("topic,archive,to,delay\na,yes,,\na,,b,\nb,,,30s\n")
    _, out, _ = run("rules", "check", path, "--topic", "a")
    assert out.split("\n\n")[1].splitlines() == [
        "rule 1 (line 2), on a: archives it", "rule 2 (line 3), on a: copies it to b",
        "rule 3 (line 4), on b: delays it by 30 s", "routed to a, archived", "routed to b, after 30 s",
    ]


def test_what_is_wrong_is_exit_code_1_with_file_rule_and_byte(file: Path) -> None:
    file.write_text(RULES.replace("price > 100", "price >> 100") + '[[rules]]\nto = "x.*"\n')
    code, out, error = run("rules", "check", file)
    assert (code, out) == (1, "")
    first, second = error.splitlines()
    assert first.startswith(f"fanlightd: {file}, line 1, rule 'dear': where: invalid selector 'price >> 100', byte 7 ")
    assert second.startswith(f"fanlightd: {file}, line 18, rule 4: to: 'x.*': ") or "wildcard" in second
    code, out, _ = run("rules", "check", file, "--json")
    assert code == 1
    assert len(json.loads(out)["problems"]) == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--fields", "{"], "--fields is not JSON"), (["--fields", "[1]"], "--fields is a JSON object"),
        (["--fields", "{}"], "of no use without --topic"), (["--topic", "a." * 300], "topic"),
        (["--topics", "a"], "did you mean --topic?"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_exit_code_2(file: Path, more: list[str], said: str) -> None:
    code, _, error = run("rules", "check", file, *more)
    assert code == 2
    assert said in error


def test_limits_are_those_of_the_settings(file: Path, tmp_path: Path) -> None:
    config = tmp_path / "fanlight.toml"
    config.write_text("rules_max = 2\n")
    code, _, error = run("rules", "check", file, "--config", config)
    assert code == 1
    assert "3 rules; at most 2 (rules_max)" in error


def test_as_a_process(file: Path) -> None:
    done = subprocess.run(
        [fanlightd(), "rules", "check", str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 rules, sound" in done.stdout
