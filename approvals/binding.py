"""What a request is bound to, compared with what is true now: which value changed from what to what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from approvals.models import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that an approval rested on and that is no longer so. None: there was, or is, nothing."""

    what: str  #: "digest", or the path of a condition: "resources.order-7"
    before: str | None
    after: str | None
    who: str = ""  #: the id of the person it is about, where it is about one

    def as_json(self) -> dict[str, str | None]:
        shown = {"what": self.what, "from": self.before, "to": self.after}
        return {**shown, "who": self.who} if self.who else shown

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Change:
        return cls(what=value["what"], before=value["from"], after=value["to"], who=value.get("who", ""))


def cause_of(changes: Sequence[Change]) -> dict[str, Any]:
    """The cause as it is stored with a voided request."""
    return {"changes": [change.as_json() for change in changes]}


def changes_in(cause: dict[str, Any] | None) -> tuple[Change, ...]:
    """The changes that a stored cause holds."""
    return tuple(Change.from_json(value) for value in (cause or {}).get("changes", ()))


def binding_changes(*, request: Request, digest: str, conditions: str) -> tuple[Change, ...]:
    """Everything in which the digest and the conditions of now differ from those the request is bound to.

    `conditions` is the canonical JSON text of an object; it is compared value by value, so that a page can
    name the one that changed. Texts that differ only in their writing are a change too: "conditions", from
    one to the other.
    """
    changes = [] if digest == request.digest else [Change(what="digest", before=request.digest, after=digest)]
    return (*changes, *condition_changes(request.conditions, conditions))


def condition_changes(was: str, now: str) -> tuple[Change, ...]:
    """Every value in which one text of conditions differs from another; "conditions" where only the writing does."""
    if was == now:
        return ()
    before, after = dict(_values(was)), dict(_values(now))
    named = tuple(
        Change(what=path, before=before.get(path), after=after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    )
    return named or (Change(what="conditions", before=was, after=now),)


def _values(text: str) -> Iterator[tuple[str, str]]:
    yield from _flat("", json.loads(text, parse_float=str, parse_int=str))


def _flat(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(f"{path}.{name}" if path else name, inner)
    else:
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
