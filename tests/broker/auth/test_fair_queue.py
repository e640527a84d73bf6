"""The queue of logins and the penalties for wrong ones, with a clock that the test turns."""

from math import inf

from fanlight_broker.auth import penalties
from fanlight_broker.auth.fair_queue import FairQueue, QueuedLogin
from fanlight_broker.auth.penalties import FREE_OF_ADDRESS, FREE_OF_NAME, Penalties
from fanlight_broker.core.places import place_of


def place(address: str, user: str = "u", login: bytes = b"") -> QueuedLogin:
    return QueuedLogin(address, user, login)


def new(places: int = 100, line: int = 100, delay: float = 0.0) -> tuple[FairQueue, Penalties]:
    known = Penalties(delay)
    return FairQueue(known, places, line), known


def served(queue: FairQueue, now: float = 0.0) -> str:
    """The addresses in the order in which they are served."""
    found = []
    while (each := queue.pop(now)) is not None:
        found.append(each.address)
        queue.done(each)
    return "".join(found)


def test_addresses_are_served_in_turn_however_many_logins_each_has() -> None:
    queue, _ = new()
    for address in "AAAAAABCC":
        queue.join(place(address), 0.0)
    assert served(queue) == "ABCACAAAA"
    assert len(queue) == queue.waiting == 0


def test_one_line_is_bounded_and_what_is_being_checked_counts() -> None:
    queue, _ = new(line=2)
    assert [queue.join(place("A"), 0.0)[0] for _ in range(3)] == [True, True, False]
    taken = queue.pop(0.0)
    assert taken is not None
    assert queue.join(place("A"), 0.0) == (False, None)
    queue.done(taken)
    assert queue.join(place("A"), 0.0) == (True, None)


def test_a_full_queue_makes_room_for_an_address_that_has_less_of_it() -> None:
    queue, _ = new(places=5)
    flood = [place("A", login=bytes([n])) for n in range(4)]
    for each in (*flood, place("B")):
        queue.join(each, 0.0)
    assert queue.join(place("C"), 0.0) == (True, flood[-1])
    assert queue.join(place("C"), 0.0) == (True, flood[-2])
    assert queue.join(place("B"), 0.0) == (False, None)  # nobody has more than the two that this would be
    assert len(queue) == 5
    assert served(queue) == "ABCAC"


def test_among_equal_lines_the_address_with_most_failures_gives_way() -> None:
    queue, known = new(places=2)
    known.failed("B", "u", 0.0)
    loser = place("B")
    queue.join(place("A"), 0.0)
    queue.join(loser, 0.0)
    assert queue.join(place("C"), 0.0) == (True, loser)
    assert queue.join(place("B"), 0.0) == (False, None)


def test_a_login_behind_its_penalty_is_passed_over_and_the_queue_says_until_when() -> None:
    queue, known = new(delay=2.0)
    for _ in range(FREE_OF_NAME + 1):
        known.failed("A", "guessed", 0.0)
    queue.join(place("A", "guessed"), 0.0)
    queue.join(place("A", "other"), 0.0)
    first = queue.pop(0.0)
    assert first is not None
    assert first.user == "other"
    assert queue.pop(0.0) is None
    assert queue.next_at() == penalties.FIRST_SECONDS
    assert queue.pop(penalties.FIRST_SECONDS) is not None
    assert queue.next_at() == inf


def test_a_penalty_doubles_with_each_failure_up_to_its_bound_and_ends_with_a_success() -> None:
    known = Penalties(1.0)
    delays = []
    for _ in range(FREE_OF_NAME + 6):
        known.failed("A", "u", 5.0)
        delays.append(round(known.until("A", "u") - 5.0, 3))
    assert delays == [0.0] * FREE_OF_NAME + [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert known.until("B", "u") == 0.0  # the same user from elsewhere
    assert known.until("A", "other") == 5.0  # few enough for the address
    known.succeeded("A", "u")
    assert known.until("A", "u") == 0.0
    assert len(known) == 0


def test_an_address_that_guesses_names_waits_as_well() -> None:
    known = Penalties(1.0)
    for number in range(FREE_OF_ADDRESS + 3):
        known.failed("A", f"user{number}", 0.0)
    assert known.until("A", "never seen") == 0.4
    for number in range(100):
        known.failed("A", f"more{number}", 0.0)
    assert known.until("A", "never seen") == 1.0


def test_failures_are_forgotten_after_a_while_and_their_number_is_bounded() -> None:
    known = Penalties(1.0)
    for _ in range(20):
        known.failed("A", "u", 0.0)
    known.failed("A", "u", penalties.FORGOTTEN_SECONDS)
    assert known.failures("A", penalties.FORGOTTEN_SECONDS) == 1
    for number in range(2 * penalties.KEPT_MAX):
        known.failed(f"{number}", "u", 0.0)
    assert len(known) == 2 * penalties.KEPT_MAX


def test_a_delay_of_0_turns_delays_off() -> None:
    known = Penalties(0.0)
    for _ in range(50):
        known.failed("A", "u", 1.0)
    assert known.until("A", "u") <= 1.0


def test_addresses_of_one_ipv6_network_are_one_and_mapped_ones_are_ipv4() -> None:
    assert place_of("2001:db8:1:2::3") == place_of("2001:db8:1:2:ffff::1") != place_of("2001:db8:1:3::3")
    assert place_of("::ffff:192.0.2.7") == place_of("192.0.2.7") == "192.0.2.7"
    assert place_of("fe80::1%eth0") == place_of("fe80::2%eth1")
    assert place_of("") == ""


def test_of_a_long_name_as_much_is_kept_as_a_user_can_have() -> None:
    known = Penalties(1.0)
    for _ in range(FREE_OF_NAME + 1):
        known.failed("A", "x" * 65_535, 0.0)
    assert known.until("A", "x" * 65_535) > 0.0
    assert all(len(key[1]) <= penalties.NAME_MAX for key in known._names._rows)  # type: ignore[index]
    known.succeeded("A", "x" * 65_535)
    assert len(known) == 0
