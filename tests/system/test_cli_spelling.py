"""`fanlight` with topics as users of Mosquitto and NATS write them: what is meant is done, or a line says why not."""

import json

import pytest

from tests.system.shell import Shell, finished


@pytest.mark.parametrize(
    ("filter", "topic"),
    [("sensors/+/temp", "sensors/7/temp"), ("sensors/#", "sensors/7/temp"), ("sensors/7/temp", "sensors/7/temp"),
     ("sensors.*.temp", "sensors.7.temp"), ("sensors.#", "sensors/7/temp"), ("+/7/temp", "sensors.7.temp")],
)  # fmt: skip
def test_the_spelling_is_inferred_and_nothing_is_said(shell: Shell, filter: str, topic: str) -> None:
    sub = shell.start("sub", filter, "--count", "1")
    assert shell("pub", topic, "21.5", "--receipt") == (0, b"1\n", "")
    assert finished(sub) == (0, f"{topic} 21.5\n".encode())


def test_a_plus_alone_is_mqtts_wildcard(shell: Shell) -> None:
    sub = shell.start("sub", "+", "--count", "1", "--json")
    assert shell("pub", "cli-one-word", "x", "--receipt") == (0, b"1\n", "")
    assert json.loads(finished(sub)[1])["topic"] == "cli-one-word"


def test_each_filter_of_a_call_is_spelled_as_it_is_written(shell: Shell) -> None:
    sub = shell.start("sub", "cli/both/+", "cli.both.*", "--count", "2")
    assert shell("pub", "cli.both.x", "y", "--receipt") == (0, b"2\n", "")
    assert finished(sub) == (0, b"cli.both.x y\n" * 2)


@pytest.mark.parametrize(
    ("filter", "said"),
    [
        ("stock.>", "in 'stock.>', > is an ordinary word: use #, as in 'stock.#'"),
        (">", "in '>', > is an ordinary word: use #, as in '#'"),
        ("stock/>", "in 'stock/>', > is an ordinary word: use #, as in 'stock/#'"),
        ("stock/*/x", "in 'stock/*/x', * is an ordinary word: use +, as in 'stock/+/x'"),
    ],
)
def test_a_wildcard_of_somebody_elses_is_taken_as_a_word_and_named(shell: Shell, filter: str, said: str) -> None:
    code, _, errors = shell("sub", filter, "--timeout", "0.1")
    assert (code, errors.splitlines()[0]) == (4, f"fanlight sub: {said}")


def test_mqtts_wildcard_between_dots_is_refused_and_both_ways_to_write_it_are_shown(shell: Shell) -> None:
    code, _, errors = shell("sub", "a.+", "--timeout", "5")
    assert code == 1
    assert errors.splitlines()[0] == "fanlight sub: 'a.+' has MQTT's wildcard + between dots: write 'a.*', or 'a/+'"


@pytest.mark.parametrize(("verb", "more"), [("pub", ["x"]), ("request", ["x"]), ("explain", [])])
@pytest.mark.parametrize(("topic", "word"), [("stock.*", "*"), ("#", "#"), ("stock.>", ">"), ("stock/*", "*")])
def test_a_wildcard_in_a_topic_is_published_as_it_is_with_a_line_that_says_so(
    shell: Shell, verb: str, more: list[str], topic: str, word: str
) -> None:
    code, _, errors = shell(verb, topic, *more)
    assert code == (5 if verb == "request" else 0)
    assert errors.splitlines()[0] == (
        f"fanlight {verb}: in '{topic}', {word} is an ordinary word: this is a topic, and wildcards are for filters"
    )


def test_a_spelling_that_is_given_is_taken_and_nothing_is_said(shell: Shell) -> None:
    sub = shell.start("sub", "rate.eur/usd", "cli.>", "--syntax", "amqp", "--count", "3")
    assert shell("pub", "rate.eur/usd", "1", "--syntax", "native", "--receipt") == (0, b"1\n", "")
    assert shell("pub", "rate.eur/usd", "1", "--receipt", "--syntax", "mqtt") == (
        5, b"0\n", "fanlight pub: nobody is subscribed, or no selector is true of it\n"
    )
    assert shell("pub", "cli.>", "2", "--syntax", "amqp") == (0, b"", "")
    assert shell("pub", "cli.>", "3", "--syntax", "amqp") == (0, b"", "")
    assert finished(sub) == (0, b"rate.eur/usd 1\ncli.> 2\ncli.> 3\n")
