"""POST /import/mosquitto: a mosquitto.conf, and the files that it names, as files of this broker.

Nothing is written here, and no file of this machine is read: what is made is for whoever sent it. The settings file
says which files the broker reads and writes, so it stays out of reach by HTTP.
"""

from collections.abc import Mapping
from typing import Final

from aiohttp import web

from fanlight_broker.admin.api.declared import FLAG, TEXT, Call, Operation, Parameter, items, shape
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import ApiError, BadParameter
from fanlight_broker.core.permissions import Action

TEXT_MAX: Final = 400_000  # characters; a body has room for them
FILES_MAX: Final = 100
FILE: Final = Parameter("files", str, "a file", most=TEXT_MAX)


class ImportOperations:
    def __init__(self, operated: Operated, headers: Mapping[str, str]) -> None:
        """headers: of every answer"""
        self._operated, self._headers = operated, headers

    def operations(self) -> tuple[Operation, ...]:
        return (Operation(
            "POST", "/import/mosquitto", "A mosquitto.conf as files of this broker; nothing is written", self.mosquitto,
            shape(files=items(shape(name=TEXT, text=TEXT, secret=FLAG)), left_out=items(TEXT), notes=items(TEXT)),
            body=(
                Parameter("configuration", str, "mosquitto.conf", required=True, most=TEXT_MAX),
                Parameter("files", dict, "texts of files that it names, by their names: password_file, acl_file, ..."),
            ), action=Action.ADMIN_WRITE, conflicts=True, tag="running",
        ),)

    async def mosquitto(self, call: Call) -> web.StreamResponse:
        files = call.body["files"] or {}
        if len(files) > FILES_MAX:
            raise BadParameter("files", f"{len(files)} files; at most {FILES_MAX}")
        checked = {FILE.check(name): FILE.check(text) for name, text in files.items()}
        convert = self._operated.action("convert_mosquitto", "configurations are not converted here")
        try:
            made = await convert(call.body["configuration"], checked)
        except ValueError as error:
            raise ApiError(400, str(error)) from None
        return web.Response(body=made, content_type="application/json", headers=self._headers)
