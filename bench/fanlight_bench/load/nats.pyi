from fanlight_bench.load.protocol import Dialect

NATS: Dialect
JETSTREAM: Dialect
