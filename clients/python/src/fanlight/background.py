"""An event loop in a thread of its own, for callers that have none: what `fanlight.sync` runs the asyncio client in."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from .errors import ConnectionClosed

T = TypeVar("T")


class LoopThread:
    """An event loop in a daemon thread, until `stop`."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._stopping = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="fanlight", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            # A caller of the last moment waits for a task: it is cancelled, so the caller gets an error.
            self.loop.run_until_complete(self._cancel_tasks())
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    async def _cancel_tasks(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it there and wait. A KeyboardInterrupt while waiting cancels it."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a blocking call on the client's own thread, from a hook, would wait for itself")
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        except RuntimeError:  # the loop is closed
            coroutine.close()
            raise ConnectionClosed("the client is closed") from None
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise ConnectionClosed("the client was closed meanwhile") from None
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        with self._stopping:
            if self._thread.is_alive():
                self.loop.call_soon_threadsafe(self.loop.stop)
                self._thread.join()
