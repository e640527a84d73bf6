"""Micro-benches: one part of the program each, in nanoseconds of processor time. They may import the broker."""
