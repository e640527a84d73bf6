"""fanlight_broker.wire.frames, compiled. The drawing is in frames.pxd."""

class Frames:
    dead: int
