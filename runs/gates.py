"""Launch gates: rules that must hold before runs may start here. `manage.py check --tag gates` asks them all.

Each is a function over the tables and declarations that it is about, and answers with what breaks it: an id, and a
hint what to change. Only the last one asks the database.

gates.E001 way out      E002 operation ids   E003 approvals    E004 resume      E005 schema versions
gates.E006 cancel       E007 three answers   E008 handoff      E009 context     E010 durability
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as replaced
from datetime import timedelta
from typing import Any, Final, Protocol

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections
from msgspec.structs import replace

from runs import context, planning
from runs.agents import Agent, View, registered
from runs.checks import compensation_faults, untold
from runs.history import History
from runs.machine import decide, specimens, upcast
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.evolve import HANDLERS, evolve
from runs.machine.handoff import KEYS, handoff
from runs.machine.safety import Action, next_safe_action
from runs.machine.transitions import REASONS, TABLE, Move, states_of
from runs.pages import timeline
from runs.tools import WritingTool

TAG: Final = "gates"
Faults = Iterator[CheckMessage]


class Gate(Protocol):
    """One rule. Its docstring says what has to hold."""

    __name__: str

    def __call__(self) -> Faults: ...


#: What an approval is bound to: recovery semantics, "Approval".
BOUND: Final = frozenset(
    {
        "plan_version", "plan_digest", "goal_version", "constraints_digest", "arguments_digests",
        "resource_versions", "policy_version", "expires_at", "rounds",
    }
)  # fmt: skip
#: Settings of PostgreSQL under which a commit that was acknowledged is never lost.
DURABLE: Final[Mapping[str, frozenset[str]]] = {
    "fsync": frozenset({"on"}),
    "full_page_writes": frozenset({"on"}),
    "synchronous_commit": frozenset({"on", "local", "remote_write", "remote_apply"}),
}


def _fault(number: int, text: str, hint: str) -> Error:
    return Error(text, hint=hint, id=f"gates.E{number:03d}")


def way_out() -> Faults:
    """From every state that is not terminal, some events lead to a terminal one, and each reason can be decided."""
    for state in s.State:
        if state not in s.TERMINAL and not _reached(state) & s.TERMINAL:
            hint = "Give the state events in transitions.TABLE that lead on, in the end to a terminal state."
            yield _fault(1, f"A run in {state.value} never ends.", hint)
    for code, decisions in REASONS.items():
        if not decisions:
            hint = "Give the reason a decision in transitions.REASONS."
            yield _fault(1, f"Nobody can decide on a run that needs a person for {code}.", hint)


def _reached(state: s.State) -> set[s.State]:
    """All states that some sequence of events leads to."""
    found, todo = set[s.State](), [state]
    while todo:
        new = _next(todo.pop()) - found
        found |= new
        todo += new
    return found


def _next(state: s.State) -> set[s.State]:
    """Where one event leads. A return leads to any state that the run can be stopped in."""
    targets = set(TABLE[state].values())
    back = {Move.BEFORE, Move.SETTLES} & targets
    stopped = {x for x in s.State if state in TABLE[x].values()} if back else set()
    return {x for target in targets for x in states_of(target)} | stopped


def operation_ids() -> Faults:
    """Every writing tool names its operations, checks what came of them, and says what may be done when unknown."""
    try:
        agents = list(registered().values())
    except (ImportError, AttributeError):
        return  # another check names the agent that cannot be imported
    for agent in agents:
        for tool in agent.tools:
            if isinstance(tool, WritingTool):
                yield from _tool(agent, tool)


def _tool(agent: Agent, tool: WritingTool) -> Faults:
    name = f"{agent.name} {agent.version}: the tool {tool.name}"
    needed = ["operation_id", "describe", "call", "postcondition", "account"]
    needed += ["query"] if getattr(tool, "queryable", False) else []
    needed += [] if getattr(tool, "reversible", True) else ["confirm_phrase"]
    for method in needed:
        if getattr(type(tool), method) is getattr(WritingTool, method):
            yield _fault(2, f"{name} has no {method}.", f"Define {method} on {type(tool).__name__}.")
    for declared in ("reversible", "queryable", "idempotency_retention"):
        if not hasattr(tool, declared):
            hint = (
                f"Declare {declared}: a tool that can neither be asked nor sent again has to say so itself."
            )
            yield _fault(2, f"{name} does not say whether it is {declared}.", hint)
    for fault in compensation_faults(agent, tool):
        yield _fault(2, fault.msg, fault.hint or "")
    if untold(tool):
        hint = "Send a key that the records show, or give each effect an operation id of its own."
        yield _fault(2, f"{name} repeats its ids and cannot tell its own record from another run's.", hint)


def approvals_bind() -> Faults:
    """An approval is bound to the plan version and to everything else that people agreed to."""
    bound = set(_conditions(specimens.plan()))
    if missing := sorted(BOUND - bound):
        hint = "Put them into decide.conditions: what is not in it can change under an approval."
        yield _fault(3, f"Approvals are not bound to: {', '.join(missing)}.", hint)
    others = {
        "plan version": replace(specimens.plan(), version=2),
        "resource": specimens.plan(resource="r:2"),
        "goal version": replace(specimens.plan(), goal_version=2),
    }
    for what, other in others.items():
        if _conditions(other) == _conditions(specimens.plan()):
            hint = "Make decide.conditions depend on it."
            yield _fault(3, f"Another {what} leaves an approval as it is.", hint)


def _conditions(plan: s.PlanDocument) -> dict[str, Any]:
    asked = decide.Requirement(
        needed=1, right="approve_plans", stands_for=timedelta(hours=1), policy_version="1"
    )
    text = decide.conditions(plan, "digest", asked, specimens.MOMENT, {"x": 1})
    found: dict[str, Any] = e.value_of(e.raw(text))
    return found


def resume_revalidates() -> Faults:
    """A run executes only after its checks have passed, and after a stop only when they passed anew."""
    hint = "Only RevalidationPassed may lead to executing, and an intent may be made only there."
    for state, moves in TABLE.items():
        for event, target in moves.items():
            if target in (*s.SENDING, Move.ONWARD) and event not in (e.RevalidationPassed, e.WaitEnded):
                yield _fault(4, f"{event.__name__} leads from {state} to executing without the checks.", hint)
            if event is e.EffectIntended and state not in s.SENDING:
                yield _fault(4, f"An intent may be made in {state}.", hint)
    yield from _returns_checked(specimens.specimen(s.State.NEEDS_HUMAN, "no_progress"), "a stop")
    yield from _returns_checked(specimens.waiting(), "a wait")


def _returns_checked(run: s.RunState, what: str) -> Faults:
    actor = e.Actor(e.ActorKind.PERSON, "p", "p")
    event = e.WaitEnded(step="x") if run.waits else e.RunResumed(decision="resume", note="")
    back = evolve(run, e.Recorded(run.seq + 1, specimens.MOMENT, actor, event))
    if back.returned_seq != back.seq:
        hint = "Let evolve note the seq at which a run comes back."
        yield _fault(4, f"A run that comes back from {what} keeps the checks from before it.", hint)


def schema_versions() -> Faults:
    """Every version of an event that was ever released is the one written now, is migrated, or is refused."""
    versions = {kind.__name__: version for kind, version in e.VERSIONS.items()}
    for name, version in upcast.missing(versions):
        hint = "Add it to upcast.UPCASTS, or to upcast.REFUSED with the reason."
        yield _fault(5, f"{name} version {version} is neither read, migrated nor refused.", hint)
    for kind in e.VERSIONS:
        if kind not in HANDLERS:
            hint = "Register it in evolve with what it changes."
            yield _fault(5, f"{kind.__name__} is written and never reduced.", hint)


def cancel_shows() -> Faults:
    """A cancel can be asked for in every state that is not terminal, is carried out, and each step of it is shown."""
    hint = "Take CancelRequested in the state's row of transitions.TABLE."
    for state in s.State:
        if state not in s.TERMINAL and e.CancelRequested not in TABLE[state]:
            yield _fault(6, f"Nobody can ask for the end of a run in {state.value}.", hint)
    for state in (s.State.CANCELLING, s.State.COMPENSATING):
        if TABLE[state].get(e.RunCancelled) is not s.State.CANCELLED:
            hint = f"RunCancelled has to lead from {state} to cancelled."
            yield _fault(6, f"A cancel is never finished in {state}.", hint)
    for kind in {kind for moves in TABLE.values() for kind in moves}:
        if kind not in timeline.SENTENCES:
            hint = "Give it a sentence in runs.pages.timeline."
            yield _fault(6, f"The timeline has no words for {kind.__name__}.", hint)
    yield from _undoing_shows()


def _undoing_shows() -> Faults:
    """An effect that was undone stands no more, and says by which one."""
    run = specimens.undoing()
    receipt = e.ReceiptStored(effect=2, executed=True, reference="r", evidence=e.raw("{}"), source="call")
    actor = e.Actor(e.ActorKind.WORKER, "w", "w")
    after = evolve(run, e.Recorded(run.seq + 1, specimens.MOMENT, actor, receipt))
    undone = after.effects[1]
    if undone.status is not s.EffectStatus.COMPENSATED or undone.compensated_by is None:
        hint = "Let evolve mark what the receipt of an effect with `undoes` undid."
        yield _fault(6, "An effect that was undone still stands.", hint)


def three_answers() -> Faults:
    """Any run says from its rows alone in which state it is, what was confirmed last, and what may safely be done."""
    for state, run in _specimens():
        try:
            answer = next_safe_action(run)
        except Exception as error:  # noqa: BLE001  whatever it is, there is no answer then
            hint = "Let safety.next_safe_action answer for every state."
            yield _fault(7, f"There is no next safe action in {state}: {error!r}.", hint)
            continue
        if (answer.action is Action.NONE) is not (run.state in s.TERMINAL):
            hint = "A run has no next safe action exactly when it has ended."
            yield _fault(7, f"The next safe action in {state} is {answer.action.value}.", hint)
    done = replace(specimens.specimen(s.State.EXECUTING), effects={1: specimens.confirmed()})
    if done.last_confirmed is None:
        hint = "Let RunState.last_confirmed find the effect with the latest receipt."
        yield _fault(7, "A confirmed effect is not found again.", hint)


def _specimens() -> Iterator[tuple[str, s.RunState]]:
    for state in s.State:
        if state is not s.State.NEEDS_HUMAN:
            yield state.value, specimens.specimen(state)
    for code in REASONS:
        yield f"needs_human for {code}", specimens.specimen(s.State.NEEDS_HUMAN, code)


def handoff_lines() -> Faults:
    """Each of the seven lines of the handoff is computed from the state, in every state."""
    for state, run in _specimens():
        try:
            lines = handoff(run, specimens.MOMENT)
        except Exception as error:  # noqa: BLE001  whatever it is, the handoff would not be there
            yield _fault(8, f"There is no handoff in {state}: {error!r}.", _HANDOFF)
            continue
        if tuple(line.key for line in lines) != KEYS:
            yield _fault(8, f"The handoff in {state} has other lines than it should.", _HANDOFF)


_HANDOFF: Final = "Let machine.handoff compute every line of KEYS from the state alone, whatever it holds."


def context_rebuilt() -> Faults:
    """What a planner knows is made anew from the state, whole; a summary adds words that can be lost, and no more."""
    for state, run in _specimens():
        try:
            view = planning.view_of(run, specimens.MOMENT)
        except Exception as error:  # noqa: BLE001  whatever it is, the planner could not go on
            hint = "Let planning.view_of need nothing but the state."
            yield _fault(9, f"The planner's view cannot be made in {state}: {error!r}.", hint)
            continue
        if view != planning.view_of(run, specimens.MOMENT):
            hint = "Let planning.view_of depend on nothing but its arguments."
            yield _fault(9, f"The planner's view differs when it is made again in {state}.", hint)
            continue
        yield from _summary_adds_words(state, run, view)


def _summary_adds_words(state: str, run: s.RunState, view: View) -> Faults:
    """With any summary or none, the planner has all of the view; without room for it, it is not asked."""
    for told in (History(), History(upto=50, summary="one thing"), History(upto=50, summary="another")):
        budget = context.size_of(view) + 100
        if replaced(_rebuilt(run, told, budget), history="", artifacts=()) != view:
            hint = "Let context.rebuilt leave out nothing but history and artifacts."
            yield _fault(9, f"The planner's context lacks or changes something in {state}.", hint)
    try:
        _rebuilt(run, History(), context.size_of(view) - 1)
    except context.ContextTooLarge:
        return
    hint = "Let context.rebuilt raise ContextTooLarge where the view does not fit."
    yield _fault(9, f"The planner is asked with less than it has to know in {state}.", hint)


def _rebuilt(run: s.RunState, told: History, budget: int) -> View:
    return context.rebuilt(run, specimens.MOMENT, history=told, budget=budget, fetch=lambda _: b"")


def durability(values: Mapping[str, str]) -> Faults:
    """The database keeps what it acknowledged; `values` are its settings by name."""
    for name, allowed in DURABLE.items():
        if values.get(name) not in allowed:
            hint = f"Set {name} to {' or '.join(sorted(allowed))}, for the server, the database and the role."
            yield _fault(10, f"The database could lose a commit: {name} is {values.get(name)}.", hint)


GATES: Final[tuple[Gate, ...]] = (
    way_out, operation_ids, approvals_bind, resume_revalidates, schema_versions, cancel_shows, three_answers,
    handoff_lines, context_rebuilt,
)  # fmt: skip


@register(TAG)
def gates(app_configs: Sequence[AppConfig] | None, **_kwargs: Any) -> list[CheckMessage]:
    """All gates that ask no database: part of every `check`, since they take milliseconds."""
    return [fault for number, gate in enumerate(GATES, 1) for fault in _asked(number, gate)]


def _asked(number: int, gate: Gate) -> list[CheckMessage]:
    try:
        return list(gate())
    except Exception as error:  # noqa: BLE001  a rule that cannot even be looked at does not hold
        return [_fault(number, f"The gate {gate.__name__} cannot be asked: {error!r}.", gate.__doc__ or "")]


@register(Tags.database, TAG)
def durable_database(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_kwargs: Any
) -> list[CheckMessage]:
    """Asks each database that the command names, all where it names none."""
    return [fault for alias in databases or [] for fault in durability(_settings(alias))]


def _settings(alias: str) -> dict[str, str]:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(DURABLE)])
        return dict(cursor.fetchall())
