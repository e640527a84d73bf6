"""Turns of logins: how much of the loop's time clients that connect may take while others' messages are under way.

    CONNECT, HELLO --enter--> at once, unless the loop was crowded a moment ago
                         '--> the line of its address --the loop's next turns--> one login of each line in its turn

A login takes some hundred microseconds, as long as a hundred messages: accepting, checking credentials, a session, and
the end of the connection. So a client that does nothing but connect would take half of a busy loop. The loop is crowded
if it passes many messages in a millisecond, in one round or in several short ones; then one address gets the part
`logins_percent` of the time, and all together one login in a round. Where nothing but logins is under way, as many are
done as arrive: a fleet that comes back after a restart does not wait.

One look at the loop lasts that long, after a login: it ends in the first round behind a timer, so that a loop that has
nothing else to do sleeps meanwhile. Nothing is measured while nobody logs in. No clock here: the ledger's is used, and
without one nobody waits.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final

from fanlight_broker.core.flow import Later
from fanlight_broker.wire.ledger import Ledger

LOGIN_SECONDS: Final = 0.000_8  # of the loop, for one connection from its accept to its end, at least; without TLS
WHOLE_LOGIN: Final = 2  # times as long as what is done in its turn: accepting, reading and its end come to the same
LOOK_AT_SECONDS: Final = 0.001  # rounds of the loop that took this long together, or one that did, and passed ...
LOOK_MESSAGES: Final = 32  # ... as many messages in and out, or ...
LOOK_BYTES: Final = 256 * 1024  # ... sent this much: it is crowded
LOOK_SECONDS: Final = 0.1  # that what was seen is believed
IDLE_SECONDS: Final = 0.01  # between two looks while somebody waits: one in each round is 5 % of a crowded loop
AT_ONCE: Final = 16  # logins in a round that is not crowded
REMEMBERED_MAX: Final = 10_000  # addresses with a login a moment ago

Login = Callable[[], Any]


class LoginTurns:
    """soon     calls a function in the loop's next round
    percent  of the loop's time, for one address while it is crowded; 100: nobody waits
    later    calls a function after so many seconds; without it, each round asks whether a look at the loop is over
    """

    def __init__(
        self, ledger: Ledger, soon: Callable[[Login], Any], percent: int, later: Later | None = None
    ) -> None:
        self.percent = percent
        self.waited = 0  # logins that had to
        self.crowded = False  # the loop, when it was looked at last
        self._ledger = ledger
        self._soon = soon
        self._later = later
        self._lines: OrderedDict[str, dict[Hashable, Login]] = OrderedDict()  # by address, in the order of their turns
        self._place_of: dict[Hashable, str] = {}  # of those that wait
        self._next: OrderedDict[str, float] = OrderedDict()  # by address: when its next login may be done
        self._expected = False  # a round has been asked for
        self._timed = False  # a timer runs, for the end of a look
        self._round: tuple[float, int, int] | None = None  # of the round that is looked at: its begin, and counts then
        self._looked_at = 0.0

    def __len__(self) -> int:
        """Logins that wait."""
        return len(self._place_of)

    def enter(self, who: Hashable, address: str, login: Login) -> bool:
        """Whether it may log in now. If not, `login` is called in its turn, unless `leave` is called before.

        who  the connection; it has one login at a time. address: its principal while nobody knows who it is.
        """
        clock = self._ledger.clock
        if clock is None or self.percent >= 100:
            return True
        now = clock()
        if not self._lines and not (self.crowded and now - self._looked_at < LOOK_SECONDS):
            self._charge(address, now)
            self._begin_look(now)
            return True
        self.waited += 1
        self._lines.setdefault(address, {})[who] = login
        self._place_of[who] = address
        self._look_again()
        return False

    @property
    def is_crowded(self) -> bool:
        """Is the loop crowded? It is looked at from now on, so that who asks again hears what is so now."""
        clock = self._ledger.clock
        if clock is None:
            return False
        now = clock()
        self._begin_look(now)
        return self.crowded and now - self._looked_at < LOOK_SECONDS

    def leave(self, who: Hashable) -> None:
        """Its connection has ended, perhaps before its turn."""
        address = self._place_of.pop(who, None)
        if address is None:
            return
        line = self._lines[address]
        del line[who]
        if not line:
            del self._lines[address]

    def _look_again(self) -> None:
        if not self._expected:
            self._expected = True
            self._soon(self._next_round)

    def _begin_look(self, now: float) -> None:
        if self._later is None:
            self._look_again()
        elif self._round is None:
            self._round = self._begin(now)
            self._end_look()

    def _end_look(self) -> None:
        """Come back when a look has lasted long enough. Those who wait are served in each round until then."""
        if self._later is None or self._lines:
            self._look_again()
        else:
            self._sleep(LOOK_AT_SECONDS)

    def _wait(self, now: float) -> None:
        """Come back when somebody's turn is, or for the next look; in the next round if the loop is not crowded."""
        if self._later is None or not self.crowded:
            self._look_again()
            return
        seconds = self._looked_at + IDLE_SECONDS - now
        if seconds > LOOK_AT_SECONDS:
            self._round = None  # no look until then
            for address in self._lines:
                seconds = min(seconds, self._next.get(address, 0.0) - now)
                if seconds <= LOOK_AT_SECONDS:
                    break
        self._sleep(max(seconds, LOOK_AT_SECONDS))

    def _sleep(self, seconds: float) -> None:
        if not self._timed and self._later is not None:
            self._timed = True
            self._later(seconds, self._time_is_over)

    def _time_is_over(self, now: float) -> None:
        self._timed = False
        if not self._expected:
            self._next_round()

    def _next_round(self) -> None:
        self._expected = False
        clock = self._ledger.clock
        if clock is None:
            return
        now = clock()
        begun, ended = self._round, False
        if begun is not None and now - begun[0] >= LOOK_AT_SECONDS:
            self._look(now, *begun)
            begun, ended = None, True
        if self._lines:
            try:
                self._serve(now)
            finally:
                after = clock()
                # What logins took is no part of what is looked at.
                self._round = self._begin(after) if begun is None else (begun[0] + after - now, *begun[1:])
                self._wait(after)
        elif ended:
            self._round = None
        else:
            self._round = begun or self._begin(now)
            self._end_look()

    def _begin(self, now: float) -> tuple[float, int, int]:
        return now, self._ledger.messages_in + self._ledger.messages_out, self._ledger.bytes_out

    def _look(self, now: float, begun: float, messages: int, octets: int) -> None:
        _, messages_now, octets_now = self._begin(now)
        passed = messages_now - messages >= LOOK_MESSAGES or octets_now - octets >= LOOK_BYTES
        self.crowded = passed
        self._looked_at = now

    def _serve(self, now: float) -> None:
        """The logins of one round. In a crowded one it is one, of an address whose last one was long enough ago."""
        if not self.crowded:
            for _ in range(AT_ONCE):
                if not self._lines:
                    return
                self._log_in(next(iter(self._lines)), now)
            return
        for address in self._lines:
            if self._next.get(address, 0.0) <= now:
                self._log_in(address, now)
                return

    def _log_in(self, address: str, now: float) -> None:
        line = self._lines[address]
        who, login = next(iter(line.items()))
        self._lines.move_to_end(address)
        self.leave(who)
        self._charge(address, now)
        login()
        clock = self._ledger.clock
        if clock is not None and (took := WHOLE_LOGIN * (clock() - now)) > LOGIN_SECONDS:  # a slow machine
            self._charge(address, now, took)

    def _charge(self, address: str, now: float, seconds: float = LOGIN_SECONDS) -> None:
        self._next[address] = now + seconds * 100 / self.percent
        self._next.move_to_end(address)
        if len(self._next) > REMEMBERED_MAX:
            self._next.popitem(last=False)
