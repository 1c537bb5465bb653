"""Whether a JSON value is as a JSON Schema says: those keywords that the published schemas use, any other fails."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int,
    "number": (int, float),
}  # fmt: skip
IGNORED = {"title", "description", "default", "$schema", "$defs", "format"}


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any], path: str = "$") -> Iterator[str]:
    """What is wrong, by place."""
    for keyword, says in schema.items():
        match keyword:
            case "$ref":
                yield from problems(value, root["$defs"][says.rpartition("/")[2]], root, path)
            case "anyOf":
                if all(any(problems(value, one, root, path)) for one in says):
                    yield f"{path}: none of {len(says)} fits {value!r}"
            case "type":
                fits = isinstance(value, TYPES[says]) and not (says == "integer" and isinstance(value, bool))
                if not fits:
                    yield f"{path}: {value!r} is no {says}"
            case "enum":
                if value not in says:
                    yield f"{path}: {value!r} is none of {says}"
            case "properties" if isinstance(value, dict):
                for name in says.keys() & value.keys():
                    yield from problems(value[name], says[name], root, f"{path}.{name}")
            case "required" if isinstance(value, dict):
                yield from (f"{path}: {name} is missing" for name in says if name not in value)
            case "items" if isinstance(value, list):
                for n, item in enumerate(value):
                    yield from problems(item, says, root, f"{path}[{n}]")
            case "additionalProperties" if isinstance(value, dict) and isinstance(says, dict):
                for name, item in value.items():
                    yield from problems(item, says, root, f"{path}.{name}")
            case "properties" | "items" | "additionalProperties" | "required":
                continue
            case _:
                assert keyword in IGNORED, f"{keyword} is not known here"
    if schema.get("format") == "date-time" and isinstance(value, str):
        datetime.fromisoformat(value)


def unnamed(value: Any, schema: dict[str, Any], root: dict[str, Any], path: str = "$") -> Iterator[str]:
    """Names in the value that the schema does not have."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if isinstance(value, dict) and "properties" in schema:
        yield from (f"{path}.{name}" for name in value.keys() - schema["properties"].keys())
        for name in value.keys() & schema["properties"].keys():
            yield from unnamed(value[name], schema["properties"][name], root, f"{path}.{name}")
    if isinstance(value, list):
        for n, item in enumerate(value):
            yield from unnamed(item, schema.get("items", {}), root, f"{path}[{n}]")
