from bench.load.protocol import Dialect

NATIVE: Dialect
