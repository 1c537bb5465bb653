"""The page that shows both sides where evidence contradicts the record of a settled effect, and what may be found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.actions import right_to_find
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.transitions import allows
from runs.models import Run
from runs.pages import attesting, effects, reconciling, words
from runs.pages.run_page import Reader, heading
from runs.pages.values import indented
from runs.pages.who import who_can, why_not

Context = dict[str, Any]

#: Why a finding cannot be recorded: (the field, what is missing).
CONDITIONS: Final[dict[str, tuple[str, words.Words]]] = {
    **attesting.CONDITIONS,
    "second_person": (
        "finding",
        gettext_lazy("You have found this already. Needed: a second person who finds the same."),
    ),
    "too_early": (
        "finding",
        gettext_lazy(
            "The call may still come through: that it did not happen may be found from %(settled)s on."
        ),
    ),
    "open_first": (
        "finding",
        gettext_lazy("The same operation is in flight or unknown in another round: settle that one first."),
    ),
    "stands_again": (
        "finding",
        gettext_lazy(
            "The operation was done again since and stands, so it cannot have happened only here: it happened twice."
        ),
    ),
    "no_such_finding": ("finding", gettext_lazy("This cannot be found from what is recorded and what came.")),
}

_FOLLOWS: Final[dict[s.Finding, words.Words]] = {
    s.Finding.AS_RECORDED: gettext_lazy("The record of %(effect)s stays. The evidence stays beside it."),
    s.Finding.HAPPENED: gettext_lazy(
        "%(effect)s becomes Confirmed, as found by people. Its step is not sent again."
    ),
    s.Finding.NOT_HAPPENED: gettext_lazy(
        "%(effect)s becomes “Did not happen”, as found by people. Doing it again is a decision of its own, in a new "
        "round under a new key."
    ),
    s.Finding.HAPPENED_TWICE: gettext_lazy(
        "The record stays. Undoing the second one becomes an open obligation; the agent is told. Nothing is sent by "
        "this."
    ),
}


def title_of(finding: str) -> str:
    """A finding as a sentence."""
    return str(words.FINDINGS[finding])


def context(
    run: Run,
    log: Sequence[e.Recorded],
    state: s.RunState,
    effect: s.Effect,
    reader: Reader,
    *,
    again_in: str,
) -> Context:
    """All of runs/finding.html but what a sent form adds."""
    came = effect.contradicted
    return {
        "run": heading(run, state),
        "effect": effects.row(state, effect, reader.mine, {r.seq: r.at for r in log}),
        "recorded": _recorded(run.pk, effect),
        "evidence": [_came(run.pk, log, effect, x) for x in effect.late if x.contradicts],
        "findings": [_said(run.pk, x) for x in effect.findings],
        "again": _again(again_in or decide.done_again(state, effect)),
        "form": _form(state, effect, came, reader, again_in) if came and open_to(state, effect) else None,
        "page_url": reverse("effect-finding", args=[run.pk, effect.number]),
        "values": {},
        "errors": [],
    }


def open_to(state: s.RunState, effect: s.Effect) -> bool:
    """Whether something is left to find about the effect, and the run's state allows it."""
    return effect.contradicted is not None and allows(state.state, e.ContradictionSettled)


def subject(effect: s.Effect) -> dict[str, int | None]:
    """What a finding is about, as the form carries it: the record, and the evidence against it."""
    came = effect.contradicted
    return {
        "record_seq": effect.receipt.seq if effect.receipt else None,
        "evidence_seq": came.seq if came else None,
    }


def _recorded(run: str, effect: s.Effect) -> Context:
    receipt = effect.receipt
    return {
        "text": reconciling.settled_sentence(effect),
        "detail": receipt.detail if receipt else "",
        "seq": receipt.seq if receipt else None,
        "url": _event(run, receipt.seq) if receipt else "",
    }


def _came(run: str, log: Sequence[e.Recorded], effect: s.Effect, came: s.Late) -> Context:
    facts = {"effect": f"E-{effect.number}", "reference": came.reference or "–"}
    text = (
        _("It says that %(effect)s happened, reference %(reference)s.") % facts
        if came.executed
        else _("It says that %(effect)s did not happen.") % facts
    )
    event = next((r.event for r in log if r.seq == came.seq), None)
    raw = indented(e.text_of(event.evidence)) if isinstance(event, e.EvidenceKept) else ""
    found = title_of(came.finding) if came.finding else ""
    return {
        "text": text,
        "at": came.at,
        "seq": came.seq,
        "url": _event(run, came.seq),
        "raw": raw,
        "found": found,
    }


def _said(run: str, said: s.Found) -> Context:
    return {
        "name": said.name, "at": said.at, "what": title_of(said.finding), "reference": said.reference,
        "how": said.how, "seq": said.seq, "event_url": _event(run, said.seq), "evidence": said.evidence,
    }  # fmt: skip


def _event(run: str, seq: int) -> str:
    return f"{reverse('run-events', args=[run])}?from={seq}#event-{seq}"


def _again(name: str) -> str:
    if not name:
        return ""
    return _("The same operation stands in %(name)s as well.") % {"name": name}


def _form(state: s.RunState, effect: s.Effect, came: s.Late, reader: Reader, again_in: str) -> Context:
    allowed = decide.findings(state, effect, came, reader.now, again_in=again_in)
    choices = [_choice(effect, came, finding, fails, reader) for finding, fails in allowed.items()]
    return {
        "may": any(right_to_find(finding) in reader.mine for finding in allowed),
        "why_not": _nobody(reader),
        "second": _second(effect, reader),
        "subject": subject(effect),
        "choices": choices,
        "reference": came.reference,
        "phrase": attesting.phrase(state, effect),
    }


def _nobody(reader: Reader) -> str:
    right = right_to_find(s.Finding.AS_RECORDED)
    return why_not(reader.person, right, reader.holders[right])


def _second(effect: s.Effect, reader: Reader) -> str:
    """That one person does not change the record, and who else there is; empty where one does."""
    if decide.findings_needed(effect, s.Finding.HAPPENED) < 2:
        return ""
    said = {x.person for x in effect.findings}
    holders = reader.holders[attesting.RIGHT]
    others = [p for p in holders if p != reader.person and str(p.pk) not in said]
    text = _("The effect cannot be undone: the record changes once two people found the same. %(who)s")
    return text % {"who": who_can(others)}


def _choice(
    effect: s.Effect, came: s.Late, finding: s.Finding, fails: str, reader: Reader
) -> dict[str, object]:
    facts = {"effect": f"E-{effect.number}"}
    right = right_to_find(finding)
    missing = "" if right in reader.mine else why_not(reader.person, right, reader.holders[right])
    found = {x.name for x in effect.findings if (x.evidence, x.finding) == (came.seq, finding.value)}
    named = _(" Found already by %(names)s.") % {"names": words.joined(sorted(found))} if found else ""
    return {
        "value": finding.value,
        "title": words.FINDINGS[finding.value],
        "text": str(_FOLLOWS[finding]) % facts + named,
        "available": not (fails or missing),
        "why_not": why(fails, effect)[1] if fails else missing,
    }


def why(condition: str, effect: s.Effect) -> tuple[str, str]:
    """The field that a condition is about, and what it asks for."""
    field, text = CONDITIONS[condition]
    return field, str(text) % {"settled": words.clock(effect.settled_at)}
