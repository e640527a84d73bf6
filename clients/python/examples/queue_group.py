"""A queue group: each job goes to one of the workers, and a busy one is passed over.

    python queue_group.py [fanlight://127.0.0.1:7420]
"""

import asyncio
import sys

import fanlight

JOBS = 30


async def worker(url: str, name: str, done: "asyncio.Queue[str]", ready: asyncio.Event) -> None:
    async with fanlight.connect(url, name=name) as client:
        # credit=1: at most one job that is not taken waits here; the others stay where a free worker gets them.
        async with client.subscribe("jobs", group="workers", credit=1) as jobs:
            ready.set()
            async for job in jobs:
                await asyncio.sleep(0.002)  # the work
                await done.put(f"{name} did {job.payload.decode()}")


async def main(url: str) -> None:
    done: asyncio.Queue[str] = asyncio.Queue()
    ready = [asyncio.Event() for _ in range(3)]
    workers = [
        asyncio.create_task(worker(url, f"worker-{number}", done, event)) for number, event in enumerate(ready)
    ]
    await asyncio.gather(*(event.wait() for event in ready))
    async with fanlight.connect(url, name="foreman") as client:
        await client.publish_many(("jobs", b"%d" % number) for number in range(JOBS))
        reports = [await done.get() for _ in range(JOBS)]
    for number in range(len(workers)):
        print(f"worker-{number}:", sum(report.startswith(f"worker-{number} ") for report in reports), "jobs")
    print(len(set(reports)), "jobs done, each once")
    for task in workers:
        task.cancel()
    await asyncio.gather(*workers, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else fanlight.DEFAULT_URL))
