"""Scaling curves: what a message costs the broker when there is more of something. They stand on bench/load."""
