"""Fanlight and RabbitMQ by AMQP 0-9-1, one after the other, with the same load: see __main__.py."""
