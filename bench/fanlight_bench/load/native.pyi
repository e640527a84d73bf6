from fanlight_bench.load.protocol import Dialect

NATIVE: Dialect
