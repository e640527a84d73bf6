"""The compiled ground floor of the broker: bytes and who gets them; no protocol, no socket, no clock.

`ledger` counts and bounds, `inbox` holds what arrives, `outbox` what leaves, `routes` finds who gets a topic, `fanout`
copies a frame to them, `msgpack` walks over encoded values.
"""
