"""The fourth section of the reconcile page: what people state about an effect themselves."""

from __future__ import annotations

from typing import Any, Final

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.rights import Right
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.transitions import allows
from runs.pages import plans, stated, words
from runs.pages.run_page import Reader
from runs.pages.who import who_can, why_not

Context = dict[str, Any]
RIGHT: Final = Right.ATTEST_EFFECTS

#: Why a statement cannot be recorded: (the field, what is missing).
CONDITIONS: Final[dict[str, tuple[str, words.Words]]] = {
    "how_missing": ("how", gettext_lazy("Enter how this was established.")),
    "reference_missing": (
        "reference",
        gettext_lazy("Enter the reference of an external proof that it happened."),
    ),
    "too_early": (
        "stated",
        gettext_lazy(
            "The call may still come through: that it did not happen may be stated from %(settled)s on."
        ),
    ),
    "second_person": (
        "stated",
        gettext_lazy("You have stated this already. Needed: a second person who states the same."),
    ),
}


def context(state: s.RunState, effect: s.Effect, reader: Reader) -> Context:
    """`statements` and `attest` of runs/reconcile.html. `attest` is None where nothing can be stated any more."""
    open_ = open_to(state, effect)
    return {
        "statements": statements(state, effect),
        "attest": _form(state, effect, reader) if open_ else None,
    }


def open_to(state: s.RunState, effect: s.Effect) -> bool:
    """Whether people may state what became of the effect: it is unknown, and the run's state allows it."""
    return effect.status is s.EffectStatus.UNKNOWN and allows(state.state, e.EffectAttested)


def subject(effect: s.Effect) -> dict[str, int | None]:
    """What a statement is about, as the form carries it: intent, latest send, latest answer that was given."""
    answer = next((a.seq for a in reversed(effect.asks) if a.failure is None), None)
    return {"intent_seq": effect.intent_seq, "send_seq": effect.last_send.seq, "answer_seq": answer}


def phrase(state: s.RunState, effect: s.Effect) -> str:
    """What a person types where the effect cannot be undone: the phrase of its step; else nothing."""
    if effect.terms.reversible:
        return ""
    plan = plans.version_of(state, effect.plan_version)
    steps = plan.plan.steps if plan else ()
    return next((x.phrase for x in steps if x.name == effect.step and x.phrase), effect.operation_id)


def statements(state: s.RunState, effect: s.Effect) -> list[Context]:
    """Every statement, the oldest first, each marked as what it is."""
    counting = stated.counting(effect)
    return [_statement(state.identity.run, said, said in counting) for said in effect.attestations]


def _statement(run: str, said: s.Attestation, counts: bool) -> Context:
    what = _("It happened.") if said.happened else _("It did not happen.")
    return {
        "name": said.name,
        "at": said.at,
        "what": what,
        "reference": said.reference,
        "how": said.how,
        "counts": counts,
        "seq": said.seq,
        "event_url": f"{reverse('run-events', args=[run])}?from={said.seq}#event-{said.seq}",
    }


def _form(state: s.RunState, effect: s.Effect, reader: Reader) -> Context:
    second = _second_person(effect, reader)
    if RIGHT not in reader.mine:
        return {
            "may": False,
            "why_not": why_not(reader.person, RIGHT, reader.holders[RIGHT]),
            "second": second,
        }
    return {
        "may": True,
        "second": second,
        "url": reverse("effect-attest", args=[state.identity.run, effect.number]),
        "subject": subject(effect),
        "choices": [_choice(state, effect, reader, happened=happened) for happened in (True, False)],
        "phrase": phrase(state, effect),
    }


def _second_person(effect: s.Effect, reader: Reader) -> str:
    """That one person is not enough, and who else there is; empty where one is."""
    if decide.attestations_needed(effect) < 2:
        return ""
    said = {a.person for a in stated.counting(effect)}
    others = [p for p in reader.holders[RIGHT] if p != reader.person and str(p.pk) not in said]
    nobody = _("Nobody else may do this now: ask the people who run this console.")
    is_second = bool(said - {str(reader.person.pk)})
    facts = {
        "effect": f"E-{effect.number}",
        "who": who_can(others) if others else "" if is_second else nobody,
    }
    text = _(
        "%(effect)s cannot be undone. It stays unknown until a second person states the same, "
        "with the same reference. %(who)s"
    )
    return (text % facts).strip()


def _choice(state: s.RunState, effect: s.Effect, reader: Reader, *, happened: bool) -> Context:
    condition = _condition(state, effect, reader, happened)
    return {
        "value": "happened" if happened else "not_happened",
        "title": _("It happened.") if happened else _("It did not happen."),
        "text": _follows(effect, happened),
        "commit": (
            _("State that %(effect)s happened") if happened else _("State that %(effect)s did not happen")
        )
        % {"effect": f"E-{effect.number}"},
        "available": not condition,
        "why_not": why(condition, effect)[1] if condition else "",
    }


def _condition(state: s.RunState, effect: s.Effect, reader: Reader, happened: bool) -> str:
    """Which rule keeps this person from stating it, asked of the machine with all fields filled in."""
    try:
        decide.attested(
            state, effect.number, happened=happened, reference="-", how="-", person=str(reader.person.pk),
            now=reader.now,
        )  # fmt: skip
    except decide.ConclusionRefused as refused:
        return refused.condition
    return ""


def why(condition: str, effect: s.Effect) -> tuple[str, str]:
    """The field that a condition is about, and what it asks for."""
    field, text = CONDITIONS[condition]
    return field, str(text) % {"settled": words.clock(effect.settled_at)}


def _follows(effect: s.Effect, happened: bool) -> str:
    """What a statement would lead to, with those who have stated it already."""
    said = [a for a in stated.counting(effect) if a.happened is happened]
    settles = _settles(effect, happened)
    if decide.attestations_needed(effect) < 2:
        return settles
    facts = {"effect": f"E-{effect.number}", "settles": settles}
    if not said:
        return _("It is kept as your statement, and %(effect)s stays unknown until a second one.") % facts
    if happened:
        named = [
            _("%(name)s, reference “%(reference)s”") % {"name": a.name, "reference": a.reference}
            for a in said
        ]
    else:
        named = [a.name for a in said]
    facts["names"] = words.clauses(named)
    return _("Stated already by %(names)s. With a second statement that says the same: %(settles)s") % facts


def _settles(effect: s.Effect, happened: bool) -> str:
    facts = {"effect": f"E-{effect.number}"}
    if happened:
        return _("%(effect)s becomes Confirmed, as stated by people. It is never sent again.") % facts
    return (
        _(
            "%(effect)s becomes “Did not happen”, as stated by people. It may be sent again under the same key, "
            "after all checks."
        )
        % facts
    )
