from fanlight_bench.load.protocol import Dialect

AMQP: Dialect
