"""The quota `logins`: how often the clients of its holder may log in, in each protocol, and what is kept of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.core import login_rates
from fanlight_broker.core.errors import LoginRateExceeded
from fanlight_broker.core.login_rates import LoginRates
from fanlight_broker.core.quota import HeldQuota, Holder, Per, Quota, Rate
from fanlight_broker.core.quota_views import quotas_view
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp.frames import PROTOCOL_HEADER
from fanlight_broker.protocols.mqtt.packets import ConnAck
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.core.test_quota_views import Everybody, done
from tests.broker.protocols.amqp import world as amqp
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native

NOW = 100.0


def held(name: str, rate: float, per: Per = Per.USER, burst: float = 1.0) -> HeldQuota:
    return HeldQuota(Holder(per, name), Quota(f"of {name}", logins=Rate(rate), burst_seconds=burst))


def enters(rates: LoginRates, now: float, *quotas: HeldQuota) -> bool:
    try:
        rates.check(quotas, now)
    except LoginRateExceeded:
        return False
    return True


def test_as_many_as_the_burst_at_once_and_then_as_the_rate_says_however_often_it_is_tried() -> None:
    rates = LoginRates()
    user = held("user a", 2)
    times = [NOW + eighth / 8 for eighth in range(81)]  # 10 seconds
    assert sum(enters(rates, now, user) for now in times) == 2 + 20
    assert rates.refused == 81 - 22
    assert [each[0]["quota"] for each in rates.refused_by.samples("quota")] == ["of user a"]


def test_a_login_refused_by_one_quota_takes_nothing_from_another() -> None:
    rates = LoginRates()
    group, user, other = held("group g", 8, Per.GROUP), held("user a", 1), held("user b", 1)
    assert enters(rates, NOW, user, group)
    assert not any(enters(rates, NOW, user, group) for _ in range(100))
    assert all(enters(rates, NOW, held(f"user {n}", 1), group) for n in range(7))
    assert not enters(rates, NOW, other, group)
    assert enters(rates, NOW + 0.125, other, group)  # nor has the group's refusal taken the user's


def test_without_a_rate_nothing_is_kept_and_a_full_bucket_is_forgotten() -> None:
    rates = LoginRates()
    assert all(enters(rates, NOW, HeldQuota(Holder(Per.USER, "user a"), Quota())) for _ in range(100))
    assert len(rates) == 0
    assert enters(rates, NOW, held("user a", 0.5))
    rates.sweep(NOW + 1.9)
    assert list(rates) == [Holder(Per.USER, "user a")]
    rates.sweep(NOW + 2)
    assert len(rates) == 0


def test_invented_names_of_clients_do_not_make_it_forget_their_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_rates, "HOLDERS_MAX", 10)
    rates, user = LoginRates(), held("user a", 20)
    passed = sum(enters(rates, NOW, held(f"client {n}", 1, Per.CLIENT), user) for n in range(1_000))
    assert passed == 20
    assert len(rates) == 11


def test_other_rates_hold_at_once() -> None:
    rates = LoginRates()
    assert enters(rates, NOW, held("user a", 1))
    assert not enters(rates, NOW, held("user a", 1))
    assert enters(rates, NOW + 0.125, held("user a", 8))


def test_a_slower_rate_is_owed_until_its_own_bucket_is_full() -> None:
    rates = LoginRates()
    assert all(enters(rates, NOW, held("user a", 4)) for _ in range(4))
    assert not enters(rates, NOW, held("user a", 0.25))
    rates.sweep(NOW + 1)
    assert not enters(rates, NOW + 1, held("user a", 0.25))
    assert enters(rates, NOW + 4, held("user a", 0.25))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), max_size=60), st.sampled_from([1, 2, 4]))
def test_as_plain_arithmetic_has_it(tries: list[tuple[int, int]], rate: int) -> None:
    rates, now = LoginRates(), NOW
    tokens = dict.fromkeys(range(4), float(rate))
    for who, eighths in tries:
        now += eighths / 8  # exact, so that both agree to the last bit
        tokens = {each: min(rate, has + rate * eighths / 8) for each, has in tokens.items()}
        may = tokens[who] >= 1
        assert enters(rates, now, held(f"user {who}", rate)) is may
        tokens[who] -= may
        rates.sweep(now)


# -- in each protocol ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "code"), [(V3, R.SERVER_UNAVAILABLE), (V5, R.CONNECTION_RATE_EXCEEDED)])
def test_mqtt_refuses_in_connack(version: Version, code: R) -> None:
    world = mqtt.World()
    world.broker.clients.quotas = Everybody(logins=1)
    world.connect("a", version)
    refused = world.open(version)
    refused.say(mqtt.connect("b", version))
    answer = refused.next()
    assert isinstance(answer, ConnAck)
    assert answer.reason_code == code
    assert refused.gone
    assert world.broker.paces.logins.refused == world.broker.everybody.refused_by_quotas == 1
    world.now += 1
    world.connect("b", version)


def test_natively_it_is_an_error_and_the_end() -> None:
    world = native.World()
    world.broker.clients.quotas = Everybody(logins=1)
    world.connect()
    refused = world.open()
    refused.send(native.frame(1, 1, {}))
    error = refused.frames()[0]
    assert error[0] == 13, error
    assert error[2] == "limit_exceeded"
    assert error[4] == {"limit": "quota logins", "value": 1.0}
    assert refused.gone
    world.now += 1
    world.connect()


def test_amqp_refuses_with_530() -> None:
    world = amqp.World()
    world.broker.clients.quotas = Everybody(logins=1)
    world.connect()
    refused = world.open()
    refused.send(PROTOCOL_HEADER)
    refused.say(amqp.PLAIN, 0)
    refused.say(first.ConnectionTuneOk(2_047, refused.frame_max, 0), 0)
    refused.say(first.ConnectionOpen("/"), 0)
    close = refused.got()[-1].method
    assert isinstance(close, first.ConnectionClose)
    assert (close.reply_code, close.reply_text.split(" ")[0]) == (530, "NOT_ALLOWED")
    assert world.broker.paces.logins.refused == 1
    world.now += 1
    world.connect()


def test_the_view_has_it_as_a_rate() -> None:
    world = native.World()
    world.broker.clients.quotas = Everybody(logins=2)
    world.connect()
    row = done(quotas_view(world.broker, world.now, offset=0, limit=10, by="part", principal=None, entry=None))[0][
        "quotas"
    ][0]
    rate = row["rates"]["logins"]
    assert (rate["messages"], rate["passed"], rate["refused"], rate["over_rate"]) == (2.0, 1, 0, "refuse")
