"""AMQP 0-9-1 with RabbitMQ's extensions: docs/decisions/0025-amqp.md has the design.

Section numbers are those of the AMQP 0-9-1 specification.
"""
