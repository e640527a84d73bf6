from bench.load.protocol import Dialect

NATS: Dialect
