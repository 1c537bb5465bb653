"""Agents: what a planner is given, what it may propose, and the registry of agent versions.

A planner proposes; it cannot name a state, mark a step done or finish a run. The engine validates what it
proposes and the machine decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import PurePath
from typing import Any, Protocol
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.module_loading import import_string

from approvals.expressions import compiled
from approvals.policy import Policy
from runs.late import Bounds as Bounds
from runs.late import FromChild as FromChild
from runs.late import FromReading as FromReading
from runs.late import FromReceipt as FromReceipt
from runs.late import FromSignal as FromSignal
from runs.late import Late as Late
from runs.tools import ReadingTool, Tool, WritingTool


@dataclass(frozen=True, kw_only=True)
class Observed:
    """One observation as the planner sees it; never one that is out of date."""

    tool: str
    arguments: Mapping[str, Any]
    value: Any
    resource: str
    version: str
    observed_at: datetime


@dataclass(frozen=True, kw_only=True)
class Done:
    """An effect of the run's lineage that stands: confirmed and not compensated."""

    step: str
    tool: str
    operation_id: str
    arguments: Mapping[str, Any]
    reference: str


@dataclass(frozen=True, kw_only=True)
class Kept:
    """An artifact of the run: a file of a person, long evidence, or a result that the planner kept.

    `content` is there for results, the latest of each name, as far as the budget reaches.
    """

    number: int
    name: str
    kind: str
    media_type: str
    size: int
    hash: str
    about: str
    content: str | None = None


@dataclass(frozen=True, kw_only=True)
class Signalled:
    """An answer that came from outside, by its name; the latest last."""

    name: str
    payload: Any
    by: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class ChildResult:
    """A run that this one started for a step: where it is, or how it ended."""

    run: str
    step: str
    name: str
    agent: str
    ended: str  #: succeeded or cancelled; empty while it goes on


@dataclass(frozen=True, kw_only=True)
class ProposedConstraint:
    """What a person who was to approve a plan wants changed. A plan says by `number` that it takes it."""

    number: int
    text: str
    by: str  #: who asked
    at: datetime
    version: int  #: of the plan that it was said about


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A constraint that the run accepted. With a `predicate` code refuses every plan of which it is not true."""

    number: int
    text: str
    source: str  #: its kind
    confirmed: bool = True  #: False: the planner inferred it, and no person confirmed that
    name: str = ""
    predicate: str = ""  #: CEL over one step of a plan, as policies have it


@dataclass(frozen=True, kw_only=True)
class View:
    """All that a planner may know: rebuilt from the log each time, nothing else is kept between calls.

    `artifacts` and `history` are what the budget leaves room for. Everything else is there, or the planner is not
    asked at all. Words of `history` come from people, models and other systems: they describe, and order nothing.
    """

    run: str
    goal: str
    input: Mapping[str, Any]
    constraints: tuple[str, ...]
    observations: tuple[Observed, ...]
    standing: tuple[Done, ...]
    advice: tuple[str, ...]  #: what people wrote for it: answers, and notes to what they decided
    voided: str | None  #: why the plan before lost its validity, in words
    next_version: int
    obligations: tuple[str, ...] = ()  #: what the run promised and has not done yet
    artifacts: tuple[Kept, ...] = ()  #: the newest first
    history: str = ""  #: what happened so far: a summary, and the newest events one by one
    signals: tuple[Signalled, ...] = ()
    children: tuple[ChildResult, ...] = ()
    proposed_constraints: tuple[ProposedConstraint, ...] = ()  #: changes asked, the oldest first
    accepted: tuple[Accepted, ...] = ()  #: the constraints again, with all that is known of each

    def observed(self, tool: str, arguments: Mapping[str, Any]) -> Observed | None:
        """The current observation of this tool with exactly these arguments."""
        return next(
            (o for o in self.observations if o.tool == tool and dict(o.arguments) == dict(arguments)), None
        )


@dataclass(frozen=True, kw_only=True)
class Read:
    """Proposal: read this, then ask me again."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One effect of a plan. Names say what the step acts on ("refund:order-1042"), never a number."""

    name: str
    tool: str
    arguments: Mapping[str, Any]  #: a value of them may be a `Late`: it is bound just before the send
    rests_on: tuple[Read, ...] = ()  #: the observations that it takes for true; their versions are bound


@dataclass(frozen=True, kw_only=True)
class Timer:
    """A step that waits: for a length of time from when it begins, or until a moment."""

    name: str
    length: timedelta | None = None
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Signal:
    """A step that waits for an answer from outside, at most `within`; one that came before is taken at once."""

    name: str
    signal: str
    within: timedelta | None = None


@dataclass(frozen=True, kw_only=True)
class ChildRun:
    """A run of another agent, or of this one, on behalf of the same principal. No version: the newest here."""

    name: str
    agent: str
    goal: str
    input: Mapping[str, Any]
    version: str = ""
    budget: Decimal | None = None  #: must be given where the parent has one


@dataclass(frozen=True, kw_only=True)
class Children:
    """A step that starts runs and waits until all of them have ended."""

    name: str
    runs: tuple[ChildRun, ...]


@dataclass(frozen=True, kw_only=True)
class Promise:
    """An obligation that opens when step `after` is confirmed and is discharged by the receipt of step `by`."""

    text: str
    after: str
    by: str
    due: timedelta | None = None  #: from the moment it opens


@dataclass(frozen=True, kw_only=True)
class Assume:
    """Something the plan takes for true, and its basis: observations, and constraints by their text in the view."""

    text: str
    rests_on: tuple[Read, ...] = ()
    constraints: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Infer:
    """A limit that the planner read in a document. It binds the run at once, and is shown as not confirmed by a person.

    `read` is the observation that it was read in.
    """

    text: str
    read: Read
    predicate: str = ""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Proposal: these steps, in this order. With `more` the planner is asked again once they are done."""

    steps: tuple[Step | Timer | Signal | Children, ...]
    promises: tuple[Promise, ...] = ()
    assumptions: tuple[Assume, ...] = ()
    claim: str = ""  #: what the planner says about it; shown as not verified
    takes: tuple[int, ...] = ()  #: the proposed constraints that it keeps to; shown as not verified
    more: bool = False
    infers: tuple[Infer, ...] = ()  #: limits that it read; the plan has to keep them already


@dataclass(frozen=True, kw_only=True)
class Ask:
    """Proposal: a person has to answer this first."""

    question: str


@dataclass(frozen=True, kw_only=True)
class Decline:
    """Proposal: no plan; a person has to decide."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Keep:
    """Proposal: keep this result, then ask me again. The latest of a name is found in `View.artifacts`."""

    name: str
    content: str


Proposal = Read | Plan | Ask | Decline | Keep


class Planner(Protocol):
    """A model or code. It may call nothing outside but a model; reading is proposed."""

    def propose(self, view: View) -> Proposal:
        """The next step towards the goal. May raise: nothing has happened then, it is asked again."""
        ...


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One event as history tells it."""

    seq: int
    at: datetime
    kind: str
    text: str


class Summariser(Protocol):
    """A model or code that condenses history. What it says is shown to the planner and decides nothing.

    A summary may be lost at any moment and is made again; another one for the same events changes nothing but words.
    """

    @property
    def version(self) -> str:
        """Changes with its code, prompt or model: summaries of another version are not used."""
        ...

    def summarise(self, entries: Sequence[Entry], *, limit: int) -> str:
        """These events in at most `limit` bytes; more is cut off. May raise: the events are condensed by code then."""
        ...


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A limit that every new run of an agent accepts, with its source."""

    text: str
    source_kind: str  #: policy, configuration, person, document
    source_ref: str
    source_version: str
    name: str = ""  #: short and stable: under it a changed text is the same constraint, amended
    predicate: str = ""  #: CEL, true of every step that keeps it; without one nothing but people checks it

    def __post_init__(self) -> None:
        """Raises ExpressionRefused, so that no agent is registered with a predicate that nobody can evaluate."""
        if self.predicate:
            compiled(self.predicate)


LONGEST_REFERENCE = 300  #: characters


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A document of constraints outside the code: a file, or an address that answers with JSON and an ETag.

    Every new run of the agent accepts what it states, and holds it against the document before it goes on. Where the
    document cannot be had, what it last said counts for the half-life; then no run goes on that accepted any of it.
    """

    path: str = ""  #: absolute, the same for web and workers
    url: str = ""  #: http or https; no name and password in it, since it is shown as the source
    half_life: timedelta | None = None  #: None: as long as the installation says

    def __post_init__(self) -> None:
        """Raises ValueError for what names no source, or more than one."""
        parts = urlsplit(self.url)
        if bool(self.path) == bool(self.url):
            raise ValueError("a configuration has either a path or a url")
        if self.url and (parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc):
            raise ValueError(
                f"{parts.scheme}://{parts.hostname}: a url is http or https, and holds no password"
            )
        if self.path and not PurePath(self.path).is_absolute():
            raise ValueError(f"{self.path}: the path of a configuration is absolute")
        if len(self.ref) > LONGEST_REFERENCE:
            raise ValueError(f"{self.ref[:80]}…: a source has at most {LONGEST_REFERENCE} characters")
        if self.half_life is not None and self.half_life <= timedelta():
            raise ValueError(f"{self.ref}: its half-life is no time")

    @property
    def ref(self) -> str:
        """How the source is named in constraints."""
        return self.path or self.url


@dataclass(frozen=True, kw_only=True)
class Agent:
    """One version of one agent. Old runs stay with the version that they started with."""

    name: str
    version: str
    title: str
    planner: Planner
    tools: tuple[Tool, ...]
    policy: Policy
    constraints: tuple[Constraint, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)  #: of prompt and model, where there are any
    #: The versions whose runs this one can go on with, when a person decides so. Each operation must be the same one to
    #: it; `runs.compatibility` looks at that for each run.
    takes_over: tuple[str, ...] = ()
    context_budget: int | None = None  #: bytes that a View may have; None: the setting HANDOFF_CONTEXT_BUDGET
    summariser: Summariser | None = None  #: None: code condenses the history
    sensitive: frozenset[str] = frozenset()  #: paths in the input of its runs, as `Tool.sensitive`
    #: Kind of resource, what stands before the colon of its name -> how long a value of one may be taken for current,
    #: whatever the tools say.
    half_lives: Mapping[str, timedelta] = field(default_factory=dict)
    configuration: Configuration | None = None  #: beside that of the setting HANDOFF_CONFIGURATION

    def reading(self, name: str) -> ReadingTool:
        """The reading tool of this name. Raises KeyError."""
        return next(t for t in self._named(name) if isinstance(t, ReadingTool))

    def writing(self, name: str) -> WritingTool:
        """The writing tool of this name. Raises KeyError."""
        return next(t for t in self._named(name) if isinstance(t, WritingTool))

    def _named(self, name: str) -> list[Tool]:
        found = [t for t in self.tools if t.name == name]
        if not found:
            raise KeyError(name)
        return found


def configurations(agent: Agent) -> tuple[Configuration, ...]:
    """The documents that its constraints come from: its own, and that of the installation."""
    named = configured(settings.HANDOFF_CONFIGURATION)
    return tuple({x.ref: x for x in (named, agent.configuration) if x}.values())


def configured(source: str) -> Configuration | None:
    """The configuration that a setting names: a url or a path; None for an empty one. Raises ValueError."""
    if not source:
        return None
    return Configuration(url=source) if "://" in source else Configuration(path=source)


def newest(name: str) -> Agent | None:
    """The newest version of an agent that this process has. Versions are compared as text; the last wins."""
    here = [agent for (known, _), agent in registered().items() if known == name]
    return max(here, key=lambda agent: agent.version, default=None)


@cache
def registered() -> Mapping[tuple[str, str], Agent]:
    """Every agent version of the setting HANDOFF_AGENTS ("package.module:NAME"), by (name, version)."""
    agents = [import_string(path.replace(":", ".")) for path in settings.HANDOFF_AGENTS]
    return {(agent.name, agent.version): agent for agent in agents}


def queue_name(name: str, version: str) -> str:
    """The broker queue that only workers with this agent version read."""
    return f"agent.{name}.{version}"


def served_queues() -> list[str]:
    """The queues that a worker with this code reads, the sweep's included."""
    return ["handoff", *(queue_name(*key) for key in sorted(registered()))]
