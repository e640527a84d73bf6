"""The broker's clock: the one that every `now` in the program comes from."""

import time

# Monotonic: limits are about durations, and the wall clock jumps.
monotonic = time.monotonic

# Of the loop's thread: how long one turn of it takes, whatever else the machine does.
thread_cpu = time.thread_time
