"""Tests of a debug build (FANLIGHT_DEBUG=1): `make test-sanitize` builds one and runs them; `make test` does not."""
