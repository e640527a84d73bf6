"""Payloads of any octets through `fanlight pub` and `fanlight sub`, and what `reply` and the flags say when wrong."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.system.shell import FANLIGHT, SECONDS, Shell, finished

OCTETS = bytes(range(256))


def test_a_file_is_one_message_octet_by_octet(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(OCTETS * 100)
    sub = shell.start("sub", "cli.image", "--raw", "--count", "1")
    assert shell("pub", "cli.image", "--file", str(tmp_path / "image"), "--receipt") == (0, b"1\n", "")
    assert finished(sub) == (0, OCTETS * 100)


def test_all_of_standard_input_is_one_message(shell: Shell) -> None:
    sub = shell.start("sub", "cli.whole", "--raw", "--count", "2")
    assert shell("pub", "cli.whole", "--stdin-whole", stdin=OCTETS) == (0, b"", "")
    assert shell("pub", "cli.whole", "--stdin-whole", stdin=b"") == (0, b"", "")
    assert finished(sub) == (0, OCTETS)


def test_a_file_that_no_frame_holds_is_refused_with_the_name_of_the_setting(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(2**21))
    code, _, said = shell("pub", "cli.large", "--file", str(tmp_path / "large"))
    assert (code, "frame_bytes_max" in said, said.count("\n")) == (1, True, 1)
    code, _, said = shell("pub", "cli.large", stdin=bytes(2**21))
    assert (code, "frame_bytes_max" in said, said.count("\n")) == (1, True, 1)


def test_a_payload_that_is_given_twice_is_a_wrong_command_line(shell: Shell) -> None:
    assert shell("pub", "t", "x", "--file", "f")[0] == 2
    assert shell("pub", "t", "x", "--stdin-whole")[0] == 2
    assert shell("pub", "t", "--file", "f", "--stdin-whole")[0] == 2


def test_payloads_alone_are_a_line_each(shell: Shell) -> None:
    sub = shell.start("sub", "cli.alone", "--payload-only", "--count", "2")
    shell("pub", "cli.alone", stdin=b"one word\n\xff\x1b[2J")
    assert finished(sub) == (0, b"one word\n\\xff\\x1b[2J\n")


def test_the_payload_is_text_in_json_whatever_its_octets(shell: Shell) -> None:
    sub = shell.start("sub", "cli.json.#", "--json", "--count", "2")
    shell("pub", "cli.json.a", stdin="zürich".encode())
    shell("pub", b"cli.json.\xff", stdin=b"a\xff")
    first, second = map(json.loads, finished(sub)[1].splitlines())
    assert (first["payload"], "payload_base64" in first, "topic_base64" in first) == ("zürich", False, False)
    assert (second["payload"], second["payload_base64"]) == ("a\ufffd", "Yf8=")
    assert (second["topic"], second["topic_base64"]) == ("cli.json.\ufffd", "Y2xpLmpzb24u/w==")


# reply --exec


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("/no/such", "--exec: there is no program '/no/such' to run, or it may not be run"),
        ("no-such-program -x", "--exec: there is no program 'no-such-program' to run, or it may not be run"),
        ("", "--exec names no program"),
        ("'unclosed", "cannot read --exec \"'unclosed\": No closing quotation"),
    ],
)
def test_a_program_that_is_not_there_is_found_at_the_start(shell: Shell, command: str, said: str) -> None:
    assert shell("reply", "cli.x", "--exec", command) == (2, b"", f"fanlight reply: {said}\n")


def test_a_program_that_goes_away_or_is_slow_is_a_failed_answer_and_not_the_end(shell: Shell, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    reply = shell.start("reply", "cli.gone", "--exec", str(program), "--exec-timeout", "0.1", "--count", "2")
    code, _, said = shell("request", "cli.gone")
    assert (code, said) == (1, "fanlight request: the answer is an error: no answer within 0.1 s\n")
    program.unlink()
    code, _, said = shell("request", "cli.gone")
    assert (code, said.endswith(f"cannot run {program}: No such file or directory\n")) == (1, True)
    _, told = reply.communicate(timeout=SECONDS)
    assert reply.returncode == 0
    assert [line.split(b": ")[1:3] for line in told.splitlines()] == [
        [b"'cli.gone'", b"no answer within 0.1 s"], [b"'cli.gone'", b"cannot run " + os.fsencode(program)],
    ]  # fmt: skip


# Wrong command lines.


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["publish"], "fanlight: there is no verb 'publish'; did you mean pub?\ntry `fanlight --help`\n"),
        (["requst", "x"], "fanlight: there is no verb 'requst'; did you mean request?\ntry `fanlight --help`\n"),
        (["pub", "--headr", "a=b", "t", "x"],
         "fanlight pub: there is no --headr; did you mean --header?\ntry `fanlight pub --help`\n"),
        (["pub", "--headr"], "fanlight pub: there is no --headr; did you mean --header?\ntry `fanlight pub --help`\n"),
        (["pub", "a", "b", "c"],
         "fanlight pub: not understood: c; a text with spaces needs quotes\ntry `fanlight pub --help`\n"),
        (["sub", "a", "--count", "many"],
         "fanlight sub: argument --count: must be a whole number, at least 1; got 'many'\ntry `fanlight sub --help`\n"),
        (["sub", "a", "--count", "0"],
         "fanlight sub: argument --count: must be a whole number, at least 1; got '0'\ntry `fanlight sub --help`\n"),
        (["sub", "a", "--timeout", "long"],
         "fanlight sub: argument --timeout: must be a number of seconds above 0; got 'long'\n"
         "try `fanlight sub --help`\n"),
        (["sub", "a", "--syntax", "stomp"],
         "fanlight sub: argument --syntax: is one of auto, amqp, native, mqtt; got 'stomp'\n"
         "try `fanlight sub --help`\n"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_told_what_was_meant_and_where_the_help_is(
    shell: Shell, words: list[str], said: str
) -> None:
    assert shell(*words) == (2, b"", said)


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["sub", "-h", "localhost", "a"], "--url fanlight://user:password@host:7420"),
        (["pub", "-p", "1883", "a", "b"], "--url fanlight://user:password@host:7420"),
        (["pub", "-t", "a", "-m", "b"], "fanlight pub TOPIC PAYLOAD"),
        (["sub", "a", "-C", "1"], "--count"),
    ],
)
def test_flags_of_mosquittos_clients_are_answered_with_ours(shell: Shell, words: list[str], advice: str) -> None:
    code, out, said = shell(*words)
    assert (code, out) == (2, b"")
    assert advice in said


def test_the_payload_may_stand_behind_the_flags(shell: Shell) -> None:
    code, out, said = shell("pub", "cli.behind", "--receipt", "x")
    assert (code, out) == (5, b"0\n")
    assert said == "fanlight pub: nobody is subscribed, or no selector is true of it\n"


def test_help_is_still_help(shell: Shell) -> None:
    assert shell("sub", "-h")[0] == 0
    assert shell("-h")[0] == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_is_the_null_device(shell: Shell, closed: str) -> None:
    words = f"{FANLIGHT[0]} -m fanlight.cli"
    sub = shell.start("sub", "cli.closed", "--count", "1")
    for command in (f"echo hi | {words} pub cli.closed >&-", f"{words} sub cli.closed --timeout 0.1 {closed}",
                    f"{words} pub cli.closed {closed} --receipt x"):  # fmt: skip
        done = subprocess.run(["sh", "-c", command], env=shell.environment, capture_output=True, timeout=SECONDS)
        expected = 4 if " sub " in command else (0, 5)[" --receipt" in command]
        assert (done.returncode, b"Assertion" in done.stderr) == (expected, False), (command, done.stderr)
    assert finished(sub) == (0, b"cli.closed hi\n")


def test_payloads_are_lines_unless_asked_otherwise_also_without_a_standard_input(shell: Shell) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{FANLIGHT[0]} -m fanlight.cli pub cli.none <&-"],
        env=shell.environment, capture_output=True, timeout=SECONDS,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
