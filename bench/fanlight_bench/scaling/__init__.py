"""Scaling curves: what a message costs the broker when there is more of something. Built on fanlight_bench.load."""
