"""The checkpoint: everything that a run means and is, as of one event, in six groups. The form of the document.

A group holds parts of the state as they are, so that the state can be made again from the document alone, and what
follows from them: results by key, the key of each effect that may still come, what is open and what may be done about
it. It is evidence, and no credential: it names approval and principal and grants nothing.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final, cast, get_type_hints

import msgspec
from msgspec import Raw
from msgspec.structs import astuple

from runs.machine import state as s
from runs.machine.canonical import canonical, digest, parse
from runs.machine.events import Cause
from runs.machine.waits import Part

VERSION: Final = 1
FORMAT: Final = f"handoff-checkpoint/{VERSION}"
TAG: Final = "checkpoint"

#: Group -> the fields of the state that stand in it. What none names is a cursor, and stands with the position.
GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "identity": ("identity", "goals"),
    "position": (),
    "context": ("observations", "artifacts", "advice", "signals"),
    "actions": ("effects", "rounds", "keys", "produced", "inherited", "undone", "children"),
    "governance": (
        "constraints", "obligations", "requests", "revalidation", "lendings", "checked",
        "cancel_requested", "undo_requested",
    ),
}  # fmt: skip
_NAMED: Final = frozenset(name for fields in GROUPS.values() for name in fields)


class KeptPlan(Part, frozen=True, kw_only=True):
    """A plan version. Its steps are read from `document`, the very text that was reviewed and digested."""

    version: int
    document: str
    digest: str
    claim: str
    seq: int
    at: datetime
    by_policy: bool = False
    voided: tuple[Cause, ...] = ()
    voided_seq: int | None = None
    takes: tuple[int, ...] = ()
    broken: tuple[s.BrokenAssumption, ...] = ()


class Result(Part, frozen=True, kw_only=True):
    """What a tool gave, under the key of the call: `outcome` is done, not_done or read."""

    tool: str
    arguments: str
    outcome: str
    value: Raw
    at: datetime
    seq: int
    reference: str = ""
    version: str = ""
    effect: int | None = None


class MaySend(Part, frozen=True, kw_only=True):
    """An effect that the plan may still produce, under its key; that is empty while arguments of it are open."""

    step: str
    tool: str
    system: str
    operation_id: str
    key: str
    round: int
    arguments_digest: str
    reversible: bool


class MayStart(Part, frozen=True, kw_only=True):
    """A run that the plan may still start."""

    step: str
    name: str
    agent: str
    run: str


class Open(Part, frozen=True, kw_only=True):
    """An effect in flight or unknown: `may` is what may be done about it: ask, resend, or person."""

    effect: int
    key: str
    operation_id: str
    status: s.EffectStatus
    may: str
    settled_at: datetime
    asked: int


class Position(Part, frozen=True, kw_only=True):
    """Where the run has got to, for readers: the cursors themselves stand beside it."""

    plan_version: int
    plan_digest: str
    step: str
    attempt: int


class Authority(Part, frozen=True, kw_only=True):
    """What the run was allowed to do and on whose account: references, and never a credential."""

    principal: str
    grant: str
    approval: str
    approval_status: str
    deadline: datetime | None
    budget: str | None
    spent: str


class Versions(Part, frozen=True, kw_only=True):
    """What must not be mixed."""

    checkpoint: int
    schema: int
    reducer: int
    agent: str
    agent_version: str
    code: dict[str, str]


_HINTS: Final = {
    **get_type_hints(s.RunState),
    "observations": tuple[s.Observation, ...],
    "plans": tuple[KeptPlan, ...],
}
_OWN: Final[dict[str, list[tuple[str, Any]]]] = {
    "position": [("now", Position)],
    "actions": [
        ("results", dict[str, Result]), ("may_send", tuple[MaySend, ...]), ("may_start", tuple[MayStart, ...]),
        ("open", tuple[Open, ...]), ("started", dict[str, str]),
    ],
    "governance": [("authority", Authority)],
}  # fmt: skip


def fields_of(group: str) -> tuple[str, ...]:
    """The fields of the state that stand in a group."""
    rest = (name for name in s.RunState.__struct_fields__ if name not in _NAMED)
    return tuple(rest) if group == "position" else GROUPS[group]


def _made(group: str) -> Any:
    """The type of a group: fields of the state with their types and defaults, then what follows from them."""
    info = {x.name: x for x in msgspec.structs.fields(s.RunState)}
    taken = [_field(name, info[name]) for name in fields_of(group)]
    return msgspec.defstruct(
        group.capitalize() + "Group", [*taken, *_OWN.get(group, [])], bases=(Part,), frozen=True, kw_only=True,
        module=__name__,
    )  # fmt: skip


def _field(name: str, info: Any) -> Any:
    if info.required:
        return name, _HINTS[name]
    if name in ("observations", "plans"):
        return name, _HINTS[name], ()
    default = (
        msgspec.field(default_factory=info.default_factory)
        if info.default is msgspec.NODEFAULT
        else info.default
    )
    return name, _HINTS[name], default


_TYPES: Final[dict[str, Any]] = {group: _made(group) for group in GROUPS}
#: The whole document: its heading, the groups, and the versions, which are the sixth.
Checkpoint: Any = msgspec.defstruct(
    "Checkpoint",
    [
        ("format", str), ("run", str), ("seq", int), ("head", str), ("at", datetime),
        *_TYPES.items(), ("versions", Versions),
    ],
    bases=(Part,), frozen=True, kw_only=True, module=__name__,
)  # fmt: skip
_decoder: Final = msgspec.json.Decoder(Checkpoint)
_plan: Final = msgspec.json.Decoder(s.PlanDocument)
_encoder: Final = msgspec.json.Encoder(decimal_format="string")


class CheckpointRefused(Exception):
    """The document is not one that can be taken in. Nothing was changed. The text says what is wrong with it."""


def text_of(document: Any) -> str:
    """The canonical text of a document: the digest is of this, and an event holds it."""
    return canonical(parse(_encoder.encode(document).decode()))


def digest_of(text: str) -> str:
    """The digest of a document's canonical text."""
    return digest(TAG, text)


def read(text: str) -> Any:
    """The document of a canonical text. Raises CheckpointRefused for another format, or a part that is wrong."""
    found = re.match(r"handoff-checkpoint/(\d+)$", str(_format_of(text)))
    if not found or int(found[1]) > VERSION:
        raise CheckpointRefused(
            f"Its format is {_format_of(text)!r}, and this version reads {FORMAT}. Take it in with a newer version."
        )
    try:
        return _decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise CheckpointRefused(f"It is not a whole checkpoint: {error}") from error


def _format_of(text: str) -> object:
    try:
        heading = msgspec.json.decode(text, type=dict[str, Raw])
        return msgspec.json.decode(heading["format"])
    except (msgspec.MsgspecError, KeyError):
        return None


def restored(document: Any) -> s.RunState:
    """The state that the document is of. Raises CheckpointRefused where a plan cannot be read."""
    parts = {name: getattr(getattr(document, group), name) for group in GROUPS for name in fields_of(group)}
    try:
        return s.RunState(**parts | _ordered(parts))
    except (msgspec.MsgspecError, AttributeError) as error:
        raise CheckpointRefused(f"A part of it cannot be read: {error}") from error


def _ordered(parts: dict[str, Any]) -> dict[str, Any]:
    """What the document keeps as lists, and mappings in the order in which the run made them."""
    waits, children = parts["waits"], parts["children"]
    return {
        "plans": tuple(map(_plan_version, parts["plans"])),
        "observations": {(x.tool, x.arguments): x for x in parts["observations"]},
        "effects": dict(sorted(parts["effects"].items())),
        "artifacts": dict(sorted(parts["artifacts"].items())),
        "waits": dict(sorted(waits.items(), key=lambda x: x[1].began_seq)),
        "children": dict(sorted(children.items(), key=lambda x: x[1].seq)),
        "done": _done_in_order(parts),
    }


def _plan_version(kept: KeptPlan) -> s.PlanVersion:
    parts = dict(zip(KeptPlan.__struct_fields__, astuple(kept), strict=True))
    return s.PlanVersion(**parts, plan=_plan.decode(kept.document))


def _done_in_order(parts: dict[str, Any]) -> dict[str, int]:
    """The done steps in the order of the plan."""
    plans = parts["plans"]
    steps = [x.name for x in _plan.decode(plans[-1].document).steps] if plans else []
    done = cast("dict[str, int]", parts["done"])
    return {
        name: done[name] for name in sorted(done, key=lambda x: steps.index(x) if x in steps else len(steps))
    }


def kept_plan(plan: s.PlanVersion) -> KeptPlan:
    """A plan version without what its text says already."""
    return KeptPlan(**{name: getattr(plan, name) for name in KeptPlan.__struct_fields__})


def made(state: s.RunState, **own: Any) -> Any:
    """The document of a state. `own` is what follows from its parts: heading, versions, and a dict for each group."""
    parts = {name: getattr(state, name) for name in s.RunState.__struct_fields__}
    parts["observations"] = tuple(state.observations.values())
    parts["plans"] = tuple(kept_plan(x) for x in state.plans)
    groups = {
        group: type_(**{name: parts[name] for name in fields_of(group)}, **own.pop(group, {}))
        for group, type_ in _TYPES.items()
    }
    return Checkpoint(format=FORMAT, run=state.identity.run, **groups, **own)
