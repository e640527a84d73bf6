"""The broker's clock: the one that every `now` in the program comes from."""

import time

# Monotonic: limits are about durations, and the wall clock jumps.
monotonic = time.monotonic

# Of the loop's thread: how long one turn of it takes, whatever else the machine does.
thread_cpu = time.thread_time

# Seconds since 1970, for what is shown to people and programs; nothing is timed by it.
wall = time.time
