"""Tracing: spans of messages by OpenTelemetry, which is imported only where the settings ask for it."""
