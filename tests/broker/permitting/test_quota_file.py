"""The file of quotas: whose an entry is, what it bounds, and what is wrong with it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.core.permissions import Asker
from fanlight_broker.core.quota import NO_QUOTA, NoQuotas, Rate
from fanlight_broker.core.shares import SharedPot
from fanlight_broker.permitting.quota_file import QuotaFileError, load, parse_quotas

FILE = """
[[quota]]
name = "devices"
group = "sensors"
connections = 1
publish_messages = 10
burst_seconds = 5
over_rate = "refuse"

[[quota]]
address = "10.0.0.0/8"
stored_bytes = 1000

[[quota]]
connections = 20
"""


def test_the_first_entry_that_applies_is_the_quota() -> None:
    quotas = parse_quotas(FILE, "quotas.toml")
    device = quotas.of(Asker(user="a", groups=frozenset({"sensors"}), address="10.1.1.1"), {})
    assert (device.name, device.connections, device.publish, device.burst_seconds, device.refuse) == (
        "devices", 1, Rate(10.0), 5.0, True,
    )  # fmt: skip
    inside = quotas.of(Asker(user="b", address="10.1.1.1"), {})
    assert (inside.pots, inside.connections, inside.refuse) == ({SharedPot.STORED_BYTES: 1000}, None, False)
    assert quotas.of(Asker(user="b", address="192.0.2.1"), {}).connections == 20


def test_of_each_kind_of_holder_the_first_entry_that_applies_holds() -> None:
    quotas = parse_quotas(
        '[[quota]]\nname = "own"\nreplays = 2\n'
        '[[quota]]\nname = "no"\nuser = "b"\nper = "client"\nreplays = 3\n'
        '[[quota]]\nname = "each"\nper = "client"\nreplays = 4\nmessage_bytes = 9\n'
        '[[quota]]\nname = "team"\ngroup = ["g2", "g1", "h*"]\nper = "group"\nreplays = 5\nmessage_bytes = 7\n', "q",
    )  # fmt: skip
    quota = quotas.of(Asker(user="a", client="c", groups=frozenset({"g2", "h3", "x"}), address="10.0.0.1"), {})
    assert (quota.name, quota.replays) == ("own", 2)
    assert (quota.least("message_bytes"), quota.least("topic_aliases")) == (7, None)
    assert {(held.holder.per.value, held.holder.name, held.quota.replays) for held in quota.also} == {
        ("client", "client c of user a", 4), ("group", "group g2", 5),
    }  # fmt: skip
    anonymous = quotas.of(Asker(client="c", address="10.0.0.1"), {"replays": 1})
    assert [held.holder.name for held in anonymous.also] == ["client c of address 10.0.0.1"]
    assert anonymous.replays == 1


def test_what_is_known_of_a_user_goes_before_the_file_name_by_name() -> None:
    quotas = parse_quotas(FILE, "quotas.toml")
    own = quotas.of(Asker(user="a", groups=frozenset({"sensors"})), {"connections": 7, "marks": 3})
    assert (own.connections, own.publish, own.pots) == (7, Rate(10.0), {SharedPot.MARKS: 3})
    assert NoQuotas().of(Asker(user="a"), {"connections": 7}).connections == 7
    assert NoQuotas().of(Asker(user="a"), {}) is NO_QUOTA
    assert parse_quotas("", "q").of(Asker(user="a"), {}) is NO_QUOTA


WHO = st.fixed_dictionaries({}, optional={"user": st.sampled_from("ab"), "group": st.sampled_from("gh")})


@given(st.lists(st.tuples(WHO, st.integers(-2, 2)), max_size=6), st.sampled_from("abc"), st.sets(st.sampled_from("gh")))
def test_entries_are_looked_at_in_the_order_of_salience_and_then_of_the_file(
    entries: list[tuple[dict[str, str], int]], user: str, groups: set[str]
) -> None:
    text = "".join(
        "[[quota]]\n" + "".join(f'{key} = "{value}"\n' for key, value in who.items())
        + f"salience = {salience}\nconnections = {number}\n" for number, (who, salience) in enumerate(entries)
    )
    found = parse_quotas(text, "q").of(Asker(user=user, groups=frozenset(groups)), {})
    applying = [
        (salience, number) for number, (who, salience) in enumerate(entries)
        if who.get("user", user) == user and (who.get("group") is None or who["group"] in groups)
    ]
    assert found.connections == (min(applying)[1] if applying else None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("quota = 1", "begin each entry with a line [[quota]]"),
        ("[[quotas]]\nconnections = 1", "there is no 'quotas' in a file of quotas"),
        ("[[quota]]\n", "entry 1: it bounds nothing"),
        ("[[quota]]\nconections = 1", "entry 1: there is no quota 'conections'; there are connections"),
        ("[[quota]]\nconnections = -1", "entry 1: connections is -1; it is a whole number from 0 up"),
        ("[[quota]]\nconnections = true", "it is a whole number"),
        ("[[quota]]\nconnections = 1.5", "it is a whole number"),
        ("[[quota]]\npublish_messages = nan", "publish_messages is nan"),
        ("[[quota]]\npublish_messages = 'x'", "publish_messages is 'x'; it is a number"),
        ("[[quota]]\nburst_seconds = 0\nconnections = 1", "burst_seconds is 0; it is above 0"),
        ("[[quota]]\nover_rate = 'drop'", """over_rate is 'drop'; it is "hold" or "refuse\""""),
        ("[[quota]]\nclient = 'x'\nconnections = 1", "client: clients choose their own names"),
        ("[[quota]]\naddress = 'here'\nconnections = 1", "'here' is no address"),
        ("[[quota]]\nsalience = 'x'\nconnections = 1", "salience: is a number"),
        ("[[quota]]\nconnections = 1\n[[quota]]\nmessage_byte = 1", "entry 2: there is no quota 'message_byte'"),
        ("[[quota]]\nqueue_messages = 0", "queue_messages is 0; it is a whole number from 1 up"),
        ("[[quota]]\nconnections = 1\nper = 'site'", "per is 'site'; it is one of user, client, group, address"),
        ("[[quota]]\nconnections = 1\nper = 'group'", "name the groups, with group = ..."),
        ("[[quota]]\nname = 'x'\nper = 'client'\nmarks = 1\n" * 2, "entry 2: name: 'x' is another entry of the same"),
        ("[[quota", "q: "),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(QuotaFileError) as raised:
        parse_quotas(text, "q")
    assert problem in str(raised.value)


def test_a_file_that_cannot_be_read_or_is_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QuotaFileError, match="cannot be read"):
        load(tmp_path / "absent")
    (tmp_path / "q").write_bytes(b"\xff")
    with pytest.raises(QuotaFileError, match="not UTF-8"):
        load(tmp_path / "q")
