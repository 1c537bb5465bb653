"""Requests and answers as values, free of sockets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec


class Refusal(Exception):
    """A request that was definitely not executed, with the status and the words that say why."""

    def __init__(self, status: HTTPStatus, error: str, message: str, **details: object) -> None:
        """`error` is for programs, `message` for people; details go beside them."""
        super().__init__(message)
        self.status = status
        self.body = {"error": error, "message": message, **details}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client asked for. Header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def path(self) -> str:
        """The path, decoded."""
        return unquote(urlsplit(self.target).path)

    def parameter(self, name: str) -> str:
        """A query parameter that must be there. Raises Refusal."""
        values = parse_qs(urlsplit(self.target).query).get(name, [])
        if len(values) != 1 or not values[0].strip():
            raise Refusal(HTTPStatus.BAD_REQUEST, "parameter_missing", f"Ask with one {name}=…")
        return values[0]

    @property
    def operation_id(self) -> str:
        """The operation id that it names anywhere, or the empty string. Never raises."""
        named = parse_qs(urlsplit(self.target).query).get("operation_id", [])
        return named[0] if named else _operation_id_in(self.body)

    @property
    def is_form(self) -> bool:
        """Whether a person's browser sent it."""
        return self.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")

    def form(self) -> dict[str, str]:
        """The fields of a form; of a repeated field the last."""
        fields = parse_qs(self.body.decode("utf-8", "replace"), keep_blank_values=True)
        return {name: values[-1].strip() for name, values in fields.items()}

    def parse[T](self, shape: type[T]) -> T:
        """The body as strict JSON of that shape. Raises Refusal naming the field."""
        try:
            return msgspec.json.decode(self.body, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, "body_refused", str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What goes back. `body` is the finished text."""

    body: bytes = b""
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "application/json; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the request was served."""
        return self.status < HTTPStatus.BAD_REQUEST


def as_json(value: object, *, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> Answer:
    """An answer of JSON. Underscores in header names stand for hyphens."""
    text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False, allow_nan=False)
    return Answer(
        body=text.encode(),
        status=status,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def answered(endpoint: Callable[[], Answer]) -> Answer:
    """The answer of an endpoint, a refusal being one."""
    try:
        return endpoint()
    except Refusal as refusal:
        return as_json(refusal.body, status=refusal.status)


def _operation_id_in(body: bytes) -> str:
    try:
        value: Any = json.loads(body or b"{}")
    except ValueError:
        return ""
    named = value.get("operation_id") if isinstance(value, dict) else None
    return named if isinstance(named, str) else ""
