"""Each pot is shared fairly: what some principals take leaves the next one its part, whatever quotas they have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.core.shares import OF_THE_LEDGER, Share, SharedPot, Shares
from tests.broker.core.sessions import World

# The others are filled with real sessions, wills, filters and messages: test_shares.py.
COUNTED = [pot for pot in SharedPot if pot not in OF_THE_LEDGER]
LIMIT = 1_000


def shares_of(pot: SharedPot, percent: int) -> Shares:
    return World(**{pot.limit: LIMIT, pot.setting: percent}).broker.shares


def take(shares: Shares, share: Share, pot: SharedPot) -> int:
    """All that it can, one by one."""
    taken = 0
    while shares.admits(share, pot):
        shares.charge(share, pot)
        taken += 1
    return taken


@pytest.mark.parametrize("pot", COUNTED)
@pytest.mark.parametrize("quota", [None, 10 * LIMIT])
def test_each_that_takes_all_it_can_leaves_the_next_its_part(pot: SharedPot, quota: int | None) -> None:
    shares, left = shares_of(pot, 75), LIMIT
    for number in range(4):
        share = shares.of(f"user {number}")
        share.bound({pot: quota} if quota is not None else {})
        assert take(shares, share, pot) >= 0.75 * left
        left = LIMIT - shares.total(pot)
        assert left > 0
        assert shares.refusals(pot) == number + 1


@pytest.mark.parametrize("pot", COUNTED)
def test_a_smaller_quota_of_one_leaves_the_more_to_others(pot: SharedPot) -> None:
    shares = shares_of(pot, 75)
    bounded = shares.of("user a")
    bounded.bound({pot: 10})
    assert take(shares, bounded, pot) == 10
    assert take(shares, shares.of("user b"), pot) == 743  # 75 % of 990


@given(
    st.sampled_from(COUNTED), st.integers(1, 99),
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 400), st.booleans()), max_size=30),
)
def test_who_uses_nothing_has_its_part_of_what_the_others_can_take(
    pot: SharedPot, percent: int, steps: list[tuple[int, int, bool]]
) -> None:
    """Five users come and go in any way: a sixth has the part of what five that took all they could would leave."""
    shares = shares_of(pot, percent)
    for who, count, back in steps:
        share = shares.of(f"user {who}")
        if back:
            shares.refund(share, pot, min(count, share.used(pot)))
        else:
            for _ in range(count):
                if not shares.admits(share, pot):
                    break
                shares.charge(share, pot)
    left = LIMIT - shares.total(pot)
    sixth = shares.of("user 5")
    assert shares.most(sixth, pot) >= percent * left / 100
    users = len({who for who, _, _ in steps})
    assert left >= LIMIT * (1 - percent / 100) ** users - users  # rounded up once for each
