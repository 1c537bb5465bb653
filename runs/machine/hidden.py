"""Values that not everybody may see: found in a log by what its tools named as sensitive, replaced wherever they stand.

What is sensitive is read from the log alone, where each plan step, reading and effect taken over names it, so a run of
old is shown as it was meant then. A value at such a path is replaced whole; its text is replaced in every other text
too: in titles, reasons, references, whatever a tool or a planner wrote it into. Digests and names stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from runs.machine import events as e
from runs.machine import late
from runs.machine import state as s
from runs.machine.canonical import Uncanonical, canonical, parse
from runs.machine.references import KEPT, stands_for

#: The path of a value that is sensitive as a whole.
WHOLE: Final = ""
#: A text shorter than this is hidden at its path only: it would be found everywhere.
LEAST: Final = 4
#: What a body that names anything sensitive has in it.
NAMES_SOME: Final = '"sensitive":["'
_DOCUMENTS: Final = frozenset({"arguments", "value", "evidence", "input"})
#: Names by which programs find things: never made from a sensitive value, which `validate` and reading refuse.
_FIXED: Final = frozenset(
    {
        "run", "tenant", "agent", "agent_version", "creator", "principal", "lineage", "start_key", "predecessor",
        "parent", "kind", "id", "tool", "system", "key", "digest", "type", "path", "status", "state", "format",
        "operation_id", "resource", "version", "request", "person", "submission", "grant", "right", "source",
        "policy_version", "artifact", "hash", "media_type", "code",
    }
)  # fmt: skip
#: Times, durations and digests: no text in which anybody could have written a value.
_MADE: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)|-?P[\dDTHMS.W]+|(sha256:)?[0-9a-f]{64}")

type Path = str


def paths_of(value: Any, paths: Iterable[Path]) -> Iterator[Any]:
    """The values at these paths of a JSON value; places in lists are not counted."""
    found: list[Any] = []
    _at_paths(value, frozenset(paths), "", found.append)
    return iter(found)


def _at_paths(value: Any, paths: frozenset[Path], at: str, take: Callable[[Any], object]) -> None:
    if covered(at, paths):
        take(value)
    elif isinstance(value, dict):
        for name, item in value.items():
            _at_paths(item, paths, f"{at}.{name}" if at else name, take)
    elif isinstance(value, list):
        for item in value:
            _at_paths(item, paths, at, take)


def covered(at: Path, paths: frozenset[Path]) -> bool:
    """Whether what stands at a path is named by one of these, or is within what is named."""
    if WHOLE in paths:
        return True
    parts = at.split(".")
    return any(".".join(parts[:length]) in paths for length in range(1, len(parts) + 1))


def leaves(value: Any) -> Iterator[str]:
    """The texts and numbers in a JSON value, as texts, those long enough to be known again."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str) and len(value.strip()) >= LEAST:
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool) and len(str(value)) >= LEAST:
        yield str(value)


def hides(plan: s.PlanDocument) -> bool:
    """Whether the plan has values that not everybody may see: whoever approves it has to."""
    return any(_hides(step) for step in plan.steps if step.sensitive)


def _hides(step: s.PlanStep) -> bool:
    if step.wait is not None:
        return True
    paths = frozenset(step.sensitive)
    known = next(paths_of(parse(step.arguments), paths), None) is not None
    return known or any(covered(x.path, paths) for x in step.late)


class Hidden:
    """What is sensitive in one log. `mark` makes the text that stands for the value of a number."""

    def __init__(self, *, mark: Callable[[int], str], fetch: Callable[[str], str | None]) -> None:
        self._mark, self._fetch = mark, fetch
        self._paths: dict[str, frozenset[Path]] = {}
        self._tools: dict[int, str] = {}  #: effect -> its tool
        self._numbers: dict[str, int] = {}  #: the same value has the same number everywhere
        self._texts: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    @classmethod
    def of(
        cls, log: Iterable[e.Recorded], *, mark: Callable[[int], str], fetch: Callable[[str], str | None]
    ) -> Hidden | None:
        """What the log hides; None where no tool of it named anything. `fetch` gives a long text by its hash."""
        bodies = [e.encode(recorded.event) for recorded in log]
        if not any(NAMES_SOME in body for body in bodies):
            return None
        found = cls(mark=mark, fetch=fetch)
        parsed = [msgspec.json.decode(body) for body in bodies]
        for body, value in zip(bodies, parsed, strict=True):
            if NAMES_SOME in body:
                found._learn(value)
        for value in parsed:
            found._body(value)
        found._compile()
        return found

    def tools(self) -> frozenset[str]:
        """The tools that named anything."""
        return frozenset(self._paths)

    def tool_of(self, effect: int) -> str:
        """The tool of an effect, empty where it is not of this log."""
        return self._tools.get(effect, "")

    def texts(self) -> tuple[str, ...]:
        """The hidden texts, each as it may be written, the longest first."""
        return tuple(sorted(self._texts, key=len, reverse=True))

    def event(self, recorded: e.Recorded) -> e.Recorded:
        """The event with marks for what is hidden."""
        type_ = type(recorded.event)
        event = e.decode(
            seq=recorded.seq, type_=type_.__name__, version=e.VERSIONS[type_], body=self.body(recorded.event)
        )
        return e.Recorded(recorded.seq, recorded.at, recorded.actor, event)

    def body(self, event: e.Event) -> str:
        """The body of the event with marks for what is hidden."""
        value = self._body(msgspec.json.decode(e.encode(event)))
        return msgspec.json.encode(value).decode()

    def text(self, text: str) -> str:
        """A text with marks for what is hidden."""
        return self._pattern.sub(lambda found: self._texts[found[0]], text) if self._pattern else text

    def holds(self, text: str) -> bool:
        """Whether a hidden text stands in it."""
        return bool(self._pattern and self._pattern.search(text))

    def _learn(self, node: Any) -> None:
        """Take in which paths are sensitive."""
        if isinstance(node, dict):
            named = node.get("sensitive")
            for path in named if isinstance(named, list) else ():
                owner = _owner(node)
                if node.get("wait"):
                    agent, _colon, path = str(path).partition(":")
                    owner = f"agent {agent}"
                if owner:
                    self._paths[owner] = self._paths.get(owner, frozenset()) | {str(path)}
            for item in node.values():
                self._learn(item)
        elif isinstance(node, list):
            for item in node:
                self._learn(item)
        elif isinstance(node, str) and (inner := _nested(node)) is not None:
            self._learn(inner)

    def _body(self, value: Any) -> Any:
        return self._walk(value, "")

    def _walk(self, node: Any, owner: str) -> Any:
        match node:
            case dict():
                owner = self._owned(node) or owner
                return {k: self._member(k, v, node, owner) for k, v in node.items()}
            case list():
                return [self._walk(item, owner) for item in node]
            case str() if (inner := _nested(node)) is not None:
                return _written(self._walk(inner, owner))
            case str():
                return self.text(node)
            case _:
                return node

    def _owned(self, node: dict[str, Any]) -> str:
        """Whose documents the node holds: a tool's, or those that an agent is started with."""
        number, tool = node.get("effect", node.get("number")), node.get("tool")
        if isinstance(number, int) and tool and "operation_id" in node:
            self._tools[number] = tool
        return _owner(node) or self._tools.get(node.get("effect", 0), "")

    def _member(self, name: str, item: Any, node: dict[str, Any], owner: str) -> Any:
        at = str(node.get("path", "")) if name in ("value", "counts_as", "bounds") else ""
        if name in ("now", "evidence") and self._refused_late(node):
            return self._struck(item)
        if name == "counts_as":
            return _written(self._document(json.loads(item), self._paths.get(owner, frozenset()), at))
        if name in _DOCUMENTS and not node.get("wait"):
            return self._document(item, self._paths.get(owner, frozenset()), at)
        if name == "bounds" and isinstance(item, dict) and covered(at, self._paths.get(owner, frozenset())):
            return {k: self._struck(v) if k in ("one_of", "least", "most") else v for k, v in item.items()}
        if isinstance(item, str) and (name in _FIXED or _MADE.fullmatch(item)):
            return item
        return self._walk(item, owner)

    def _refused_late(self, node: dict[str, Any]) -> bool:
        """Whether the node says which value came for a sensitive argument and was not within its bounds."""
        if node.get("what") != late.CAUSE and node.get("code") != "out_of_bounds":
            return False
        path = str(node.get("subject", "")).rpartition(" ")[2]
        return any(covered(path, paths) for paths in self._paths.values())

    def _document(self, value: Any, paths: frozenset[Path], at: str) -> Any:
        """What a tool takes or answers, as a value or as its text."""
        if isinstance(value, str) and (inner := _nested(value)) is not None:
            return _written(self._document(inner, paths, at))
        if stands := stands_for(value):
            return self._kept_elsewhere(stands.hash, value, paths, at)
        return self._hide(value, paths, at)

    def _kept_elsewhere(self, hash_: str, value: Any, paths: frozenset[Path], at: str) -> Any:
        """A long text of which only the beginning stands here. Where anything of it is hidden, that is hidden whole."""
        if not paths:
            return self._hide(value, paths, at)
        whole = self._fetch(hash_) if self._pattern is None else None
        if whole is not None and (inner := _nested(whole)) is not None:
            self._hide(inner, paths, at)
        return {KEPT: {**value[KEPT], "head": self._mark(0)}}

    def _hide(self, value: Any, paths: frozenset[Path], at: str) -> Any:
        if paths and covered(at, paths):
            return self._struck(value)
        match value:
            case dict():
                return {
                    self.text(k): self._hide(v, paths, f"{at}.{k}" if at else k) for k, v in value.items()
                }
            case list():
                return [self._hide(item, paths, at) for item in value]
            case str():
                return self.text(value)
            case bool() | None:
                return value
            case _:
                return self._texts.get(str(value), value)

    def _struck(self, value: Any) -> Any:
        """The mark in the value's place; lists keep their length, so that a choice stays one."""
        if isinstance(value, list):
            return [self._struck(item) for item in value]
        if value is None or value == self._mark(0):
            return value
        mark = self._mark(self._numbers.setdefault(_written(value), len(self._numbers) + 1))
        if self._pattern is None:
            for leaf in leaves(value):
                self._texts |= dict.fromkeys(_ways(leaf), mark)
        return mark

    def _compile(self) -> None:
        ways = "|".join(_exactly(way) for way in self.texts())
        self._pattern = re.compile(ways or r"(?!)")


def _owner(node: dict[str, Any]) -> str:
    tool, agent = node.get("tool"), node.get("agent")
    if tool and isinstance(tool, str):
        return tool
    return f"agent {agent}" if agent and "input" in node else ""


def _nested(text: str) -> Any:
    """The object or list that a text is of; None for any other text."""
    if not text.startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _written(value: Any) -> str:
    try:
        return canonical(value)
    except Uncanonical:
        return json.dumps(value, ensure_ascii=False)


def _ways(text: str) -> Iterator[str]:
    """The text, and as it stands within JSON and within what Python shows."""
    yield text
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield json.dumps(text)[1:-1]
    yield repr(text)[1:-1]


def _exactly(text: str) -> str:
    """A number is one only where no other digit stands beside it."""
    pattern = re.escape(text)
    return rf"(?<!\d){pattern}(?!\d)" if text.isdecimal() and len(text) < 8 else pattern
