from fanlight_bench.load.protocol import Dialect

MQTT_3: Dialect
MQTT_5: Dialect
