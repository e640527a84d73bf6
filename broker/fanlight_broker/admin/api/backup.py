"""POST /backup: a consistent copy of the store as a tar file, while the broker runs.

A process of its own copies the store beside it (`fanlightd backup`, storage/backup.py), so the loop does nothing for
it; then the copy is sent, and deleted. One at a time.
"""

import asyncio
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from aiohttp import web

from fanlight_broker.admin.api.declared import Call, Operation
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import ApiError
from fanlight_broker.core.permissions import Action

CONTENT_TYPE: Final = "application/x-tar"
PIECE: Final = 256 * 1024
SECONDS: Final = 4 * 3600.0  # that the connection lives for it
NAME: Final = "fanlight-store"  # of the folder in the tar file


class BackupOperations:
    def __init__(self, operated: Operated) -> None:
        self._operated = operated
        self._busy = False

    def operations(self) -> tuple[Operation, ...]:
        return (Operation(
            "POST", "/backup", "A consistent copy of the store", self.backup, None, action=Action.ADMIN_WRITE,
            content_type=CONTENT_TYPE, conflicts=True, tag="running",
        ),)

    async def backup(self, call: Call) -> web.StreamResponse:
        copy: Callable[[Path], asyncio.Future[str | None]] = self._operated.action(
            "backup", "nothing is stored: see the setting data"
        )
        if self._busy:
            raise ApiError(409, "a backup is under way")
        self._busy = True
        try:
            # Beside the store: there is room for it, and the copy is as well protected.
            room = await asyncio.to_thread(tempfile.mkdtemp, prefix=".fanlight-backup-", dir=self._operated.folder)
            try:
                target = Path(room) / NAME
                if (problem := await copy(target)) is not None:
                    raise ApiError(503, f"the store could not be copied: {problem}")
                return await self._send(call, target)
            finally:
                await asyncio.to_thread(shutil.rmtree, room, ignore_errors=True)
        finally:
            self._busy = False

    async def _send(self, call: Call, folder: Path) -> web.StreamResponse:
        response = web.StreamResponse(headers={
            "Content-Type": CONTENT_TYPE, "Content-Disposition": f'attachment; filename="{NAME}.tar"',
            "Cache-Control": "no-store",
        })
        self._operated.lengthen(call.request, SECONDS)
        await response.prepare(call.request)
        octets = 0
        try:
            for path in sorted(await asyncio.to_thread(lambda: list(folder.iterdir()))):
                octets += await self._send_file(response, path)
            await response.write(bytes(2 * tarfile.BLOCKSIZE))
        except BaseException:
            if call.request.transport is not None:
                call.request.transport.abort()  # an incomplete answer must not look complete
            raise
        call.noted["bytes"] = octets
        return response

    async def _send_file(self, response: web.StreamResponse, path: Path) -> int:
        info = tarfile.TarInfo(f"{NAME}/{path.name}")
        info.size, info.mode = (await asyncio.to_thread(path.stat)).st_size, 0o600
        await response.write(info.tobuf(tarfile.GNU_FORMAT))
        with path.open("rb") as file:
            while piece := await asyncio.to_thread(file.read, PIECE):
                await response.write(piece)
        await response.write(bytes(-info.size % tarfile.BLOCKSIZE))
        return info.size
