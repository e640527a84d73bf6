"""A pytest plugin for scripts/coverage.sh: cuts short what takes hours with line tracing and covers no further line."""

import hypothesis

EXAMPLES_MAX = 20  # of a property; the tests ask for up to 2,500, and a traced line takes 50 times as long


def pytest_configure() -> None:
    """Fewer examples, whatever a test asks for."""
    # Its class refuses assignments, for users; there is no other place for a limit that `@settings` does not override.
    type.__setattr__(hypothesis.settings, "max_examples", property(lambda self: min(self._max_examples, EXAMPLES_MAX)))
