"""Configurations of other brokers, converted into Fanlight's files (docs/migrate-mosquitto.md)."""
