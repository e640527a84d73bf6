"""The native protocol (docs/native-protocol.md), without I/O: bytes in, bytes out.

`lane` (compiled) finds frames and forwards messages; `connection` decides about everything else, with `frames` and
`codec` for what is on the wire, `state` for what is legal when, and `error_codes` for how a refusal is put.
"""
