"""The OpenAPI 3.1 document of the API, made of the declarations of its operations."""

from collections.abc import Sequence
from typing import Any, Final

from fanlight_broker.admin.api.declared import Operation, Parameter
from fanlight_broker.admin.api.problems import CONTENT_TYPE

PROBLEM: Final = {"$ref": "#/components/schemas/Problem"}
DESCRIPTIONS: Final = {
    400: "a parameter or the body is not as declared, or says what cannot be",
    401: "no credentials, or wrong ones",
    403: "the permission is missing, or the request came from a page of another site",
    404: "there is no such thing",
    409: "the state does not allow it",
    413: "the body is too long",
    415: "the body is not application/json",
    429: "too many requests of this caller are under way",
    503: "nothing can be stored now, or there is no room",
}


def document(operations: Sequence[Operation], version: str, base: str) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = described(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fanlight", "version": version,
            "description": "What an operator can see and do. docs/http-api.md explains it.",
        },
        "servers": [{"url": base}],
        "paths": paths,
        "components": {
            "schemas": {"Problem": {
                "type": "object", "required": ["type", "title", "status", "detail"],
                "properties": {
                    "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
                    "detail": {"type": "string"},
                },
            }},
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "login": {"type": "apiKey", "in": "cookie", "name": "fanlight_session"},
            },
        },
        "security": [{}, {"basic": []}, {"bearer": []}, {"login": []}],
    }


def described(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": f"{operation.method.lower()}_{name_of(operation.path)}",
        "summary": operation.summary,
        "tags": [operation.tag or "broker"],
        "parameters": [parameter_of(each, each.name in operation.names) for each in operation.parameters],
        "responses": {str(operation.status): answer_of(operation), **problems_of(operation)},
    }
    if operation.action is not None:
        found["x-permission"] = operation.action.value
    if operation.body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": {
            "type": "object", "additionalProperties": False,
            "required": [each.name for each in operation.body if each.required],
            "properties": {each.name: {**key_of(each), "description": each.summary} for each in operation.body},
        }}}}
        if not found["requestBody"]["content"]["application/json"]["schema"]["required"]:
            del found["requestBody"]["content"]["application/json"]["schema"]["required"]
    return found


def key_of(parameter: Parameter) -> dict[str, Any]:
    """The schema of a key of a body: what need not be there may be null, too."""
    schema = parameter.schema
    if not parameter.required and "type" in schema:
        schema["type"] = [schema["type"], "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    return schema


def name_of(path: str) -> str:
    return path.strip("/").replace("/", "_").replace("{", "").replace("}", "").replace("-", "_").replace(".", "_") \
        or "index"


def parameter_of(parameter: Parameter, in_path: bool) -> dict[str, Any]:
    schema = parameter.schema
    if in_path and schema["type"] == "string":
        schema["minLength"] = max(1, schema.get("minLength", 1))  # else the path has a segment less
    return {
        "name": parameter.name, "in": "path" if in_path else "query", "required": in_path or parameter.required,
        "description": parameter.summary, "schema": schema,
    }


def answer_of(operation: Operation) -> dict[str, Any]:
    schema = {"type": "string"} if operation.answer is None else dict(operation.answer)
    return {"description": operation.summary, "content": {operation.content_type: {"schema": schema}}}


def problems_of(operation: Operation) -> dict[str, Any]:
    statuses = [400, 401, 403, 429, 503]
    if operation.absent:
        statuses.append(404)
    if operation.conflicts:
        statuses.append(409)
    if operation.body is not None:
        statuses += [413, 415]
    found: dict[str, Any] = {
        str(status): {"description": DESCRIPTIONS[status], "content": {CONTENT_TYPE: {"schema": PROBLEM}}}
        for status in sorted(statuses)
    }
    # Of a request whose first line or headers are too long, no more is read, so its path is not known.
    found["400"]["content"]["application/json"] = {"schema": {
        "type": "object", "required": ["error"], "properties": {"error": {"type": "string"}},
    }}
    return found
