"""`fanlight top --users` without a broker: who is ranked how, and rates of those who come and go."""

from typing import Any

from fanlight.cli import top
from fanlight.cli.top_users import UserSample, user_figures


def row(name: str, messages_in: int = 0, messages_out: int = 0, **more: Any) -> dict[str, Any]:
    return {"principal": name, "messages_in": messages_in, "messages_out": messages_out, **more}


class Quotas:
    """What /quotas would say."""

    def __init__(self, *rows: dict[str, Any], total: int | None = None) -> None:
        self.page = {"quotas": list(rows), "total": len(rows) if total is None else total}

    def get(self, path: str, **query: object) -> dict[str, Any]:
        assert path == "/quotas"
        return self.page


def sample(at: float, *rows: dict[str, Any], total: int | None = None) -> UserSample:
    made = UserSample(Quotas(*rows, total=total))  # type: ignore[arg-type]
    made.at = at
    return made


def test_users_are_ranked_by_messages_a_second_in_and_out_together() -> None:
    before = sample(1.0, row("user a", 1000), row("user b", 0, 10), row("user c"))
    now = sample(3.0, row("user a", 1010), row("user b", 20, 30), row("user c", part=0.5))
    page = user_figures(before, now, 10)
    assert [user["principal"] for user in page["users"]] == ["user b", "user a", "user c"]
    assert page["users"][0]["per_second"]["messages_in"] == 10.0
    assert page["users"][0]["per_second"]["messages_out"] == 10.0
    assert page["users"][1]["per_second"]["messages_in"] == 5.0


def test_a_user_who_has_just_come_has_counted_from_0_and_one_who_has_left_is_not_there() -> None:
    page = user_figures(sample(1.0, row("user a", 9)), sample(2.0, row("user b", 7)), 10)
    assert [(user["principal"], user["per_second"]["messages_in"]) for user in page["users"]] == [("user b", 7.0)]


def test_of_a_user_who_was_not_among_those_that_were_read_nothing_is_known() -> None:
    page = user_figures(sample(1.0, row("user a", 9), total=600), sample(2.0, row("user b", 7), total=600), 10)
    assert [(user["principal"], user["per_second"]["messages_in"]) for user in page["users"]] == [("user b", 0.0)]


def test_a_count_that_went_down_is_no_negative_rate() -> None:
    page = user_figures(sample(1.0, row("user a", 9)), sample(2.0, row("user a", 1)), 10)
    assert page["users"][0]["per_second"]["messages_in"] == 0.0


def test_the_table_has_a_line_for_each_and_says_what_is_left_out() -> None:
    full = row("user a\x1b[2J", 5, bytes_in=1_000_000, connections=1200, part=0.256, held=3, quota="devices")
    page = user_figures(sample(1.0), sample(2.0, full, row("user b")), 1)
    head, line, rest = top.lines(page)
    assert head.split()[:3] == ["user", "in/s", "out/s"]
    assert line.split() == ["user", r"a\x1b[2J", "5", "0", "1,000,000", "0", "1,200", "0", "26%", "3", "0", "devices"]
    assert rest == "... and 1 more"
