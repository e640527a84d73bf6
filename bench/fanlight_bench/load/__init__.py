"""The load harness: scenarios in files, a compiled generator, any broker of native, MQTT or NATS: see run.py."""
