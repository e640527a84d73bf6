"""Permits that routes have no room for: the table says yes to what was kept, and to nothing else."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.wire import permits
from fanlight_broker.wire.allocator import fail_after

MOST_BYTES = 20 << 20  # 16 MiB, and the smaller table before it
Pair = tuple[int, int]


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    permits.forget_permits()
    yield
    permits.forget_permits()


pairs = st.tuples(st.integers(0, 5), st.integers(256, 280))
steps = st.one_of(
    st.tuples(st.just("keep"), pairs), st.tuples(st.just("ask"), pairs), st.tuples(st.just("many"), pairs),
    st.tuples(st.sampled_from(["renew", "forget"]), pairs),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=40))
def test_what_is_known_is_what_was_kept(actions: list[tuple[str, Pair]]) -> None:
    permits.forget_permits()
    serials = [permits.new_serial() for _ in range(6)]
    kept: set[Pair] = set()
    lost = permits.counts()[2]

    def keep(serial: int, permit: int) -> None:
        if not permits.is_known(serial, permit):
            permits.keep(serial, permit)
        assert permits.is_known(serial, permit)
        kept.add((serial, permit))

    for action, (route, permit) in actions:
        match action:
            case "keep":
                keep(serials[route], permit)
            case "many":
                for each in range(permit, permit + 300):
                    keep(serials[route], each)
            case "renew":
                serials[route] = permits.new_serial()
            case "forget":
                permits.forget_permits()
                kept.clear()
            case _:
                pass
        evicted = permits.counts()[2] - lost
        for serial in serials:
            for each in range(256, 281):
                is_kept = (serial, each) in kept
                assert is_kept if permits.is_known(serial, each) else evicted or not is_kept


def test_it_is_bounded_and_what_makes_room_is_counted() -> None:
    serial, lost = permits.new_serial(), permits.counts()[2]
    for permit in range(256, 1_500_000):
        permits.keep(serial, permit)
    used, nbytes, evicted = permits.counts()
    assert nbytes == MOST_BYTES
    assert used <= 1 << 20
    assert evicted - lost >= 1_400_000 - used - (1 << 18)
    assert permits.is_known(serial, 1_499_999)
    assert not any(permits.is_known(serial + 1, permit) for permit in range(256, 10_000))
    permits.forget_permits()
    assert permits.counts()[:2] == (0, 0)
    assert not any(permits.is_known(serial, permit) for permit in range(256, 10_000))


def test_without_memory_nothing_is_known_and_nothing_fails() -> None:
    serial = permits.new_serial()
    fail_after(0)
    try:
        permits.keep(serial, 256)
    finally:
        fail_after(-1)
    assert not permits.is_known(serial, 256)
    permits.keep(serial, 256)
    assert permits.is_known(serial, 256)
