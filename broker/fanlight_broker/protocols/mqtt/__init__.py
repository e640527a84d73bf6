"""MQTT 3.1.1 and 5.0, without I/O: bytes in, bytes out.

The packet layer: `framing` finds packets in a stream, `codec` turns them into the values of `packets` and back, with
the tables of `properties` and `reason_codes`. `state` says which packets a client may send when.
"""
