"""The command `fanlight` as a shell sees it: lines, pipes, exit codes; against a real broker."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from fanlight.cli import main as fanlight_main
from fanlight.cli import others
from tests.system.shell import FANLIGHT, SECONDS, Shell, finished


def test_sub_writes_a_line_for_each_message(shell: Shell) -> None:
    sub = shell.start("sub", "cli.lines.#", "--count", "3")
    assert shell("pub", "cli.lines.a", "hello world") == (0, b"", "")
    assert shell("pub", "cli.lines.b c", "")[0] == 0
    assert shell("pub", "cli.lines.raw", stdin=b"\xff\x1b[2J\\")[0] == 0
    assert finished(sub) == (
        0,
        b"cli.lines.a hello world\ncli.lines.b\\x20c \ncli.lines.raw \\xff\\x1b[2J\\\n",
    )


def test_pub_reads_lines_and_the_last_may_lack_its_end(shell: Shell) -> None:
    sub = shell.start("sub", "cli.stdin", "--count", "4")
    assert shell("pub", "cli.stdin", stdin=b"one\ntwo\r\n\nfour")[0] == 0
    assert finished(sub) == (0, b"cli.stdin one\ncli.stdin two\ncli.stdin \ncli.stdin four\n")


def test_pub_reads_a_file_and_nothing_at_all(shell: Shell, tmp_path: object) -> None:
    sub = shell.start("sub", "cli.file", "--count", "20000")
    numbers = subprocess.run(["seq", "20000"], capture_output=True, check=True).stdout
    path = f"{tmp_path}/numbers"
    with open(path, "wb") as file:
        file.write(numbers)
    with open(path, "rb") as file:
        subprocess.run([*FANLIGHT, "pub", "cli.file"], stdin=file, check=True, env=shell.environment, timeout=SECONDS)
    code, out = finished(sub)
    assert code == 0
    assert out == b"".join(b"cli.file " + line + b"\n" for line in numbers.splitlines())
    subprocess.run(
        [*FANLIGHT, "pub", "cli.file"], stdin=subprocess.DEVNULL, check=True, env=shell.environment, timeout=SECONDS
    )


def test_sub_as_json_has_everything(shell: Shell) -> None:
    sub = shell.start("sub", "site/+/temp", "--syntax", "mqtt", "--count", "2", "--json")
    shell("pub", "site/7/temp", "21.5", "--syntax", "mqtt", "--headers", "unit=C", "--header", "a=b=c")
    shell("pub", "site.8.temp", stdin=b"\xff\xfe\n")
    code, out = finished(sub)
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        {"topic": "site/7/temp", "syntax": "mqtt", "payload": "21.5", "headers": {"unit": "C", "a": "b=c"},
         "reply": None},
        {"topic": "site.8.temp", "syntax": "amqp", "payload": "\ufffd\ufffd", "payload_base64": "//4=", "headers": {},
         "reply": None},
    ]  # fmt: skip


def test_members_of_a_group_share_the_messages(shell: Shell) -> None:
    members = [shell.start("sub", "cli.jobs", "--group", "g", "--count", "50") for _ in range(2)]
    shell("pub", "cli.jobs", stdin=b"".join(b"%d\n" % number for number in range(100)))
    lines = [line for member in members for line in finished(member)[1].splitlines()]
    assert sorted(lines) == sorted(b"cli.jobs %d" % number for number in range(100))


def test_a_receipt_prints_how_many_and_none_has_an_exit_code_of_its_own(shell: Shell) -> None:
    code, out, said = shell("pub", "cli.nobody", "x", "--receipt")
    assert (code, out) == (5, b"0\n")
    assert said == "fanlight pub: nobody is subscribed, or no selector is true of it\n"
    sub = shell.start("sub", "cli.somebody", "--count", "3")
    assert shell("pub", "cli.somebody", "--receipt", stdin=b"a\nb\nc\n") == (0, b"1\n1\n1\n", "")
    finished(sub)


def test_request_and_reply(shell: Shell) -> None:
    replies = [
        shell.start("reply", "cli.greet.*", "--template", "{topic}: hello {payload}", "--count", "1"),
        shell.start("reply", "cli.upper", "--upper", "--count", "1"),
        shell.start("reply", "cli.echo", "--count", "1"),
        shell.start("reply", "cli.count", "--exec", "wc -c", "--count", "1"),
        shell.start("reply", "cli.fails", "--exec", "false", "--count", "1"),
    ]
    assert shell("request", "cli.greet.x", "you {topic}") == (0, b"cli.greet.x: hello you {topic}\n", "")
    assert shell("request", "cli.upper", "shout") == (0, b"SHOUT\n", "")
    assert shell("request", "cli.echo", "back") == (0, b"back\n", "")
    assert shell("request", "cli.count", "12345")[1].strip() == b"5"
    code, out, said = shell("request", "cli.fails", "--json")
    assert (code, json.loads(out)["headers"]) == (1, {"error": "exit code 1"})
    assert said == "fanlight request: the answer is an error: exit code 1\n"
    ends = [reply.communicate(timeout=SECONDS) for reply in replies]
    assert [reply.returncode for reply in replies] == [0] * 5
    assert ends[-1][1] == b"fanlight reply: 'cli.fails': exit code 1\n"


def test_exit_codes_tell_what_went_wrong(shell: Shell) -> None:
    assert shell("request", "cli.nobody")[0] == 5
    assert shell("pub", "$SYS.load", "x")[0] == 1
    assert shell("sub", "a+/b", "--syntax", "mqtt")[0] == 1
    assert shell("sub")[0] == 2
    assert shell("nonsense")[0] == 2
    assert shell("pub", "--url", "http://127.0.0.1", "t", "x")[0] == 2
    assert shell("pub", "--url", "fanlight://127.0.0.1:1", "t", "x")[0] == 3
    assert shell("sub", "cli.silence", "--timeout", "0.1")[0] == 4
    assert shell("top", "--once", "--http", "http://127.0.0.1:1")[0] == 3


def test_an_error_is_one_line_that_says_what_to_do(shell: Shell) -> None:
    _, out, said = shell("pub", "--url", "fanlight://127.0.0.1:1", "t", "x")
    assert out == b""
    assert said.count("\n") == 1
    assert "fanlightd serve" in said
    assert "Traceback" not in said


def test_a_wrong_address_of_the_http_listener_is_one_line_too(shell: Shell) -> None:
    native = shell.environment["FANLIGHT_URL"].removeprefix("fanlight://")
    for address, code, words in (
        ("http://127.0.0.1:port", 2, "cannot read the address"),
        ("127.0.0.1:7421", 2, "must look like http://"),
        (f"http://{native}", 1, "this is HTTP; the broker speaks it on port "),
    ):
        status, out, said = shell("top", "--once", "--http", address)
        assert (status, out, said.count("\n")) == (code, b"", 1)
        assert words in said


def test_no_error_shows_a_number_of_errno(shell: Shell) -> None:
    for words in (
        ("pub", "--url", "fanlight://localhost:1", "t", "x"),  # two addresses, by asyncio's or uvloop's words
        ("top", "--once", "--http", "http://127.0.0.1:1"),
        ("pub", "t", "--file", "/no/such"),
        ("pub", "t", "--file", "/"),
        ("sub", "t", "--url", "fanlight://h:abc"),
        ("sub", "t", "--url", "fanlight://h:99999"),
        ("top", "--http", "http://h:99999"),
    ):
        code, _, said = shell(*words)
        assert code in (2, 3)
        assert "Errno" not in said
        assert "cast" not in said
        assert said.count("\n") == 1
    assert "a port is a whole number from 0 to 65535" in shell("sub", "t", "--url", "fanlight://h:99999")[2]
    said = shell("pub", "t", "--file", "/no/such")[2]
    assert said == "fanlight pub: cannot read '/no/such': No such file or directory\n"
    assert "mosquitto_pub" in shell("pub", "t", "x", "--url", "mqtt://127.0.0.1")[2]


def test_a_request_that_is_not_answered_times_out(shell: Shell) -> None:
    sub = shell.start("sub", "cli.deaf", "--count", "1")
    assert shell("request", "cli.deaf", "--timeout", "0.2")[0] == 4
    finished(sub)


def test_an_interrupt_ends_sub_with_130_and_what_came_is_written(shell: Shell) -> None:
    sub = shell.start("sub", "cli.interrupt")
    shell("pub", "cli.interrupt", "before", "--receipt")
    assert sub.stdout is not None
    assert sub.stdout.readline() == b"cli.interrupt before\n"  # flushed, though it is no terminal
    sub.send_signal(signal.SIGINT)
    _, said = sub.communicate(timeout=SECONDS)
    assert sub.returncode == 130
    assert b"Traceback" not in said


def test_a_reader_that_goes_away_ends_sub_without_a_complaint(shell: Shell) -> None:
    sub = shell.start("sub", "cli.pipe")
    assert sub.stdout is not None
    sub.stdout.close()
    sub.stdout = None
    shell("pub", "cli.pipe", "x")
    _, said = sub.communicate(timeout=SECONDS)
    assert (sub.returncode, said) == (0, b"")


def test_top_shows_rates_and_hot_topics(shell: Shell) -> None:
    sub = shell.start("sub", "cli.hot")
    shell("pub", "cli.hot", "x", "--receipt")
    code, out, _ = shell("top", "--once", "--interval", "0.05")
    assert code == 0
    assert b"messages in/s" in out
    code, out, _ = shell("top", "--once", "--interval", "0.05", "--json", "--topics", "1000")
    page = json.loads(out)
    assert any(each["topic"] == "cli.hot" for each in page["topics"])
    assert page["version"]
    assert set(page["per_second"]) == {"messages_in", "messages_out", "bytes_in", "bytes_out", "dropped"}
    sub.send_signal(signal.SIGINT)


def test_top_shows_users_with_what_they_publish_and_get(shell: Shell) -> None:
    sub = shell.start("sub", "cli.user")
    shell("pub", "cli.user", "x", "--receipt")
    code, out, said = shell("top", "--users", "--count", "2", "--interval", "0.05")
    assert (code, said) == (0, "")
    heads = [line for line in out.decode().splitlines() if line.startswith("user ")]
    assert [head.split()[1:3] for head in heads] == [["in/s", "out/s"]] * 2
    assert "address 127.0.0.1" in out.decode()
    code, out, _ = shell("top", "--users", "--once", "--interval", "0.05", "--json")
    (user,) = json.loads(out)["users"]
    assert (user["principal"], user["quota"]) == ("address 127.0.0.1", None)
    assert user["connections"] >= 1
    assert shell("top", "--once", "--count", "2")[0] == 2
    sub.send_signal(signal.SIGINT)


def test_explain_says_who_gets_it_and_why_another_does_not(shell: Shell) -> None:
    sub = shell.start("sub", "cli.why.*.x", "--name", "asker")
    code, out, _ = shell("explain", "cli.why.not.x")
    assert code == 0
    assert "cli.why.*.x (amqp) for asker" in out.decode()
    assert "pool: length 4, left 0 'cli', left 1 'why', left 3 'x'" in out.decode()
    code, out, _ = shell("explain", "cli.why.not", "--client", "asker")
    assert code == 0
    assert "asker does not get it by:" in out.decode()
    assert "cli.why.*.x: " in out.decode()
    far = shell.start("sub", "cli.why.#", "--where", "region = 'us'", "--name", "far", "--payload-only", "--count", "1")
    code, out, _ = shell("explain", "cli.why.not", "--fields", '{"region": "eu"}')
    assert code == 0
    assert "cli.why.# (amqp) where region = 'us' for far" in out.decode()
    assert "region is 'eu'; the selector wants = 'us'" in out.decode()
    assert "1 subscription of the topic whose selector is not true:" in out.decode()
    code, out, _ = shell("explain", "cli.why.not", "--fields", '{"region": "us"}')
    assert "pool: left 0 'cli', left 1 'why'; screen: list of 1\n" in re.sub("length [0-9]+, ", "", out.decode())
    code, out, _ = shell("explain", "cli.why.not")
    assert "whether a selector is true depends on the message: give its --fields" in out.decode()
    for region in ("eu", "us"):
        shell("pub", "cli.why.not", region, "--header", f"region={region}")
    assert finished(far) == (0, b"us\n")
    code, out, _ = shell("explain", "cli.why.not.x", "--json")
    assert json.loads(out)["words"] == ["cli", "why", "not", "x"]
    code, _, said = shell("explain", "", "--syntax", "mqtt")
    assert (code, said.startswith("fanlight explain: invalid mqtt topic")) == (1, True)
    sub.send_signal(signal.SIGINT)


def test_bench_hands_over_to_the_harness(shell: Shell) -> None:
    code, out, _ = shell("bench", "--help")
    assert code == 0
    assert out.startswith(b"usage: fanlight bench")
    assert b"python -m fanlight_bench" not in out
    code, out, _ = shell("bench", "load", "--list")
    assert (code, b"fan-out" in out) == (0, True)


def test_a_verb_whose_distribution_is_missing_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(others, "entry_points", lambda **_: ())
    assert fanlight_main(["bench", "load", "--list"]) == 2
    assert "make setup" in capsys.readouterr().err


def test_another_distribution_can_bring_a_verb(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "extra.py").write_text("def main(arguments):\n    print('extra', *arguments)\n    return 7\n")
    metadata = tmp_path / "extra-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[fanlight.commands]\nextra = extra:main\npub = extra:main\n")
    paths = os.pathsep.join(filter(None, [str(tmp_path), environment.get("PYTHONPATH")]))
    shell = Shell({**environment, "PYTHONPATH": paths})
    assert shell("extra", "--count", "3") == (7, b"extra --count 3\n", "")
    assert b"from extra" in shell("--help")[1]
    assert shell("pub", "cli.own.verb", "x") == (0, b"", "")  # the SDK's own verbs stay its own


def test_help_teaches_by_example(shell: Shell) -> None:
    code, out, _ = shell("--help")
    assert code == 0
    assert b"fanlight sub 'stock.#'" in out
    assert b"130  interrupted" in out
    assert b"5    nobody is subscribed" in out
    for verb in ("pub", "sub", "request", "reply", "top", "explain"):
        assert b"examples:" in shell(verb, "--help")[1]
    for verb in ("pub", "sub", "request", "reply", "explain"):
        said = b" ".join(shell(verb, "--help")[1].split())
        assert b"auto (the default): mqtt where there is a / or a word +, else amqp" in said
    assert b"payload_base64" in shell("sub", "--help")[1]
