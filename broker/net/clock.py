"""The broker's clock: the one that every `now` in the program comes from."""

import time

# Monotonic: limits are about durations, and the wall clock jumps.
monotonic = time.monotonic
