"""The background tasks of one client, and the program's hooks: nothing of them is lost, nothing outlives the
client."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger("fanlight")


class Tasks:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()  # the loop itself holds tasks weakly

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """A task that ends with the client; what it raises is logged."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def call(self, hook: Callable[[Any], Any] | None, argument: Any) -> None:
        """Call a function or a coroutine function of the program's; what it raises is logged."""
        if hook is None:
            return
        try:
            result = hook(argument)
        except Exception:
            log.exception("a hook failed: %r", hook)
            return
        if inspect.iscoroutine(result):
            self.spawn(result)

    async def cancel(self) -> None:
        """Cancel them all, but for the caller's own, and wait."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task of the client failed", exc_info=error)
