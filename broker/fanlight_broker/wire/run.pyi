"""fanlight_broker.wire.run, compiled. What it does is told in run.pyx."""

class Run:
    size: int
    messages: int
