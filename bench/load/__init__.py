"""The load harness: scenarios in files, a compiled generator, any broker that speaks native or MQTT: see run.py."""
