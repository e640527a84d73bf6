"""Tasks that a worker of Celery includes beside those of examples/celery: see test_celery.py."""

from pathlib import Path

from celery import Task
from celery.app.backends import by_url
from tasks import app  # examples/celery/tasks.py

app.conf.result_chord_retry_interval = 0.1  # seconds between two looks at whether the parts of a chord are done
app.conf.broker_transport_options = {"confirm_publish": True}  # delay() returns when the broker has the task
app.conf.broker_connection_retry_on_startup = True
app.conf.worker_cancel_long_running_tasks_on_connection_loss = False

kind, url = by_url("rpc://", app.loader)
by_queue = kind(app=app, url=url)


@app.task(backend=by_queue)
def doubled(number: int) -> int:
    """Its result comes by a queue of the broker."""
    return 2 * number


@app.task(bind=True, max_retries=3)
def third_time(self: Task) -> int:
    """Fails twice. Returns how often it was tried again."""
    if self.request.retries < 2:
        raise self.retry(countdown=0)
    return int(self.request.retries)


@app.task(acks_late=True)
def held(folder: str) -> str:
    """Says by the pipe `started` that it runs, and waits for the pipe `gate`; when it comes again it does not.

    Returns which of both runs this was.
    """
    first = Path(folder, "first")
    if first.exists():
        return "again"
    first.touch()
    Path(folder, "started").write_text("", encoding="utf-8")
    return Path(folder, "gate").read_text(encoding="utf-8")
