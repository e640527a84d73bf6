"""The lines of `fanlight explain`: whatever others have named their subscriptions, a terminal shows it as text."""

from fanlight.cli.explain import explained


def test_control_characters_of_others_are_escaped() -> None:
    escape = "\x1b[2J"
    row = {"client": escape, "connection": 1, "filter": escape, "syntax": "amqp", "where": escape, "reason": escape}
    answer = {
        "topic": "a", "words": ["a"], "total": 1, "matches": [row], "filtered_total": 1, "filtered": [row],
        "client": {"name": escape, "connected": 1, "why_not": [{"filter": escape, "reason": escape}]},
    }
    assert escape not in "\n".join(explained(answer))


def test_what_is_left_out_is_counted() -> None:
    row = {"client": "c", "connection": 1, "filter": "a", "syntax": "amqp", "where": "x = 1", "reason": "r"}
    answer = {
        "topic": "a", "words": ["a"], "total": 3, "matches": [row], "filtered_total": 4, "filtered": [row],
        "client": {"name": "c", "connected": 1, "why_not": [{"filter": "a", "reason": "r"}], "why_not_total": 6},
    }
    more = [line for line in explained(answer) if "more" in line]
    assert more == ["  ... and 2 more", "  ... and 3 more", "  ... and 5 more"]
