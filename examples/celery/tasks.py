"""Celery's tasks over Fanlight: see README.md beside this file."""

from celery import Celery

app = Celery("tasks", broker="amqp://127.0.0.1:5672//", backend="file:///tmp")


@app.task
def add(x, y):
    return x + y


@app.task
def total(numbers):
    return sum(numbers)
