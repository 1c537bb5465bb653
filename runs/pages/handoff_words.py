"""The handoff document in sentences, by question: for Markdown, and for what the print view adds to the run page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from msgspec import Raw

from accounts.rights import Right
from runs.machine import events as e
from runs.machine import handoff_document as h
from runs.pages import words
from runs.pages.print_view import stamp


@dataclass(frozen=True, kw_only=True)
class Line:
    """One sentence, and JSON that belongs to it, as it is stored."""

    text: str
    data: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One question and its answers, never empty: where there is nothing, a line says so."""

    key: str
    title: str
    lines: tuple[Line, ...]


def sections(found: h.Handoff, *, only: tuple[str, ...] = ()) -> tuple[Section, ...]:
    """The sections in fixed order; those of `only` where it names some."""
    return tuple(
        Section(key=key, title=str(title), lines=tuple(lines(found)) or (Line(text=str(nothing)),))
        for key, (title, nothing, lines) in _SECTIONS.items()
        if not only or key in only
    )


def _json(value: Raw) -> str:
    return e.text_of(value)


def _asked(found: h.Handoff) -> Iterator[Line]:
    asked = found.asked
    first, last = asked.revisions[0], asked.revisions[-1]
    facts = {"text": asked.original, "by": first.by, "at": stamp(first.at)}
    yield Line(text=_("Asked by %(by)s at %(at)s: “%(text)s”") % facts)
    if len(asked.revisions) == 1:
        yield Line(text=_("Committed now: the same; it was never revised."))
    for revision in asked.revisions[1:]:
        facts = {
            "version": str(revision.version), "by": revision.by, "at": stamp(revision.at), "text": revision.text,
            "reason": revision.reason or "–",
        }  # fmt: skip
        yield Line(
            text=_("Revised to goal v%(version)s by %(by)s at %(at)s: “%(text)s”. Reason: %(reason)s") % facts
        )
    if last is not first:
        yield Line(text=_("Committed now: “%(text)s”") % {"text": asked.committed})
    if asked.deadline:
        yield Line(text=_("Deadline: %(at)s.") % {"at": stamp(asked.deadline)})
    if asked.budget is not None:
        yield Line(
            text=_("Budget: %(budget)s, of which %(spent)s is spent or reserved.")
            % {"budget": asked.budget, "spent": asked.spent}
        )
    yield Line(text=_("Input:"), data=_json(asked.input))


def _happened(found: h.Handoff) -> Iterator[Line]:
    for x in found.happened:
        how = str(_SETTLED.get(x.settled_by, _SETTLED[""]))
        facts = {
            "id": x.id if x.run == found.run else f"{x.run} {x.id}", "title": x.title, "system": x.system,
            "operation": x.operation_id, "reference": x.reference or "–", "how": how,
        }  # fmt: skip
        text = (
            _("%(id)s %(title)s (%(system)s, operation %(operation)s): reference %(reference)s, %(how)s.")
            % facts
        )
        if x.undone_by:
            text = _("%(what)s Undone since then by %(by)s.") % {"what": text, "by": x.undone_by}
        yield Line(text=text)


_SETTLED: Final[dict[str, str | Promise]] = {
    "call": gettext_lazy("by the answer to the call"),
    "query": gettext_lazy("by the other system’s answer when it was asked"),
    "attestation": gettext_lazy("as people stated, not by an answer of the other system"),
    "finding": gettext_lazy("as people found against the record, not by an answer of the other system"),
    "": gettext_lazy("by a receipt in another run of the lineage"),
}


def _doubt(found: h.Handoff) -> Iterator[Line]:
    for x in found.may_have_happened:
        facts = {
            "id": x.id, "title": x.title, "system": x.system, "operation": x.operation_id, "key": x.key,
            "since": stamp(x.since), "asked": str(x.asked), "from": stamp(x.believable_from),
            "reference": x.contradicted_by,
        }  # fmt: skip
        if x.contradicted_by:
            yield Line(text=_("%(id)s %(title)s: evidence (%(reference)s) contradicts its record.") % facts)
            continue
        text = _(
            "%(id)s %(title)s (%(system)s, operation %(operation)s, key %(key)s): not known since %(since)s, asked "
            "%(asked)s times. “Not found” can be believed from %(from)s on."
        )
        yield Line(text=text % facts, data=_json(x.arguments))


def _limits(found: h.Handoff) -> Iterator[Line]:
    for x in found.not_allowed:
        facts = {
            "id": x.id, "text": words.ended(x.text), "kind": str(words.SOURCES.get(x.source_kind, x.source_kind)),
            "ref": x.source_ref, "version": x.source_version, "at": stamp(x.accepted_at), "seq": str(x.accepted_seq),
            "checked": _checked(x),
        }  # fmt: skip
        text = _(
            "%(id)s: %(text)s %(checked)s Source: %(kind)s %(ref)s, version %(version)s; "
            "accepted at %(at)s, event %(seq)s."
        )
        said = text % facts
        if x.became:
            said = _("%(said)s Its source says now: %(became)s.") % {
                "said": said,
                "became": words.inside(x.became),
            }
        yield Line(text=said)


def _checked(x: h.Limit) -> str:
    said = [
        _("Enforced by code: %(predicate)s.") % {"predicate": x.predicate}
        if x.checked_by_code
        else _("Not checked by code.")
    ]
    if not x.confirmed:
        said.append(_("Inferred by the agent. Not confirmed by a person."))
    if x.confirmed_by:
        said.append(_("Inferred by the agent. Confirmed by %(name)s.") % {"name": x.confirmed_by})
    return " ".join(said)


def _stops(found: h.Handoff) -> Iterator[Line]:
    for x in found.reasons:
        reason = e.Reason(code=x.code, subject=x.subject, evidence=x.evidence)
        yield Line(text=words.reason_with_evidence(reason, whole=True))


def _never(found: h.Handoff) -> Iterator[Line]:
    for x in found.never_send_again:
        facts = {
            "id": x.id if x.run == found.run else f"{x.run} {x.id}", "title": x.title,
            "until": stamp(x.until) if x.until else "", "at": stamp(found.at),
        }  # fmt: skip
        over = x.until is not None and x.until <= found.at
        yield Line(text=str(_NEVER["key_ended" if over else x.why]) % facts)


_NEVER: Final[dict[str, str | Promise]] = {
    "no_key": gettext_lazy(
        "%(id)s %(title)s: it happened, and the other system honours no key. A second send is a second effect."
    ),
    "key_ends": gettext_lazy(
        "%(id)s %(title)s: it happened. Its key is honoured until %(until)s; after that a second send is a second "
        "effect."
    ),
    "key_ended": gettext_lazy(
        "%(id)s %(title)s: it happened. Its key was honoured until %(until)s: a second send now is a second effect."
    ),
    "lineage": gettext_lazy("%(id)s %(title)s: it happened in another run of the lineage and stands."),
}


def _planned(found: h.Handoff) -> Iterator[Line]:
    for x in found.planned:
        facts = {"step": x.step, "title": x.title, "operation": x.operation_id, "key": x.key or "–"}
        if x.waits:
            yield Line(text=_("%(step)s: to wait for: %(title)s.") % facts)
            continue
        text = _("%(step)s: %(title)s (operation %(operation)s, key %(key)s).") % facts
        yield Line(text=text if x.reversible else _("%(text)s It cannot be undone.") % {"text": text})


def _obligations(found: h.Handoff) -> Iterator[Line]:
    for x in found.obligations:
        owner = _("those who operate the run") if x.owner == "operators" else x.owner
        said = words.ended(
            _("%(text)s, to %(to)s") % {"text": words.inside(x.text), "to": x.to} if x.to else x.text
        )
        facts = {
            "id": x.id, "text": said, "owner": owner, "proof": x.proof, "due": stamp(x.due_at) if x.due_at else "–",
            "seq": str(x.discharged_seq or ""),
        }  # fmt: skip
        if not x.open and x.proof:
            yield Line(
                text=_("%(id)s: %(text)s Done, as a person stated in event %(seq)s: %(proof)s.") % facts
            )
        elif not x.open:
            yield Line(text=_("%(id)s: %(text)s Kept by event %(seq)s.") % facts)
        elif x.overdue:
            yield Line(text=_("%(id)s: %(text)s OVERDUE since %(due)s. Owner: %(owner)s.") % facts)
        else:
            yield Line(text=_("%(id)s: %(text)s Open, due %(due)s. Owner: %(owner)s.") % facts)


def _assumptions(found: h.Handoff) -> Iterator[Line]:
    for x in found.assumptions:
        named = [f"{r.observation or r.constraint or '–'} {r.resource} {r.version}" for r in x.rests_on]
        rests = words.joined(named) or _("nothing that was read")
        facts = {"text": words.ended(x.text), "rests": rests, "by": x.by, "seq": str(x.seq)}
        if x.seq:
            yield Line(
                text=_(
                    "%(text)s BROKEN since event %(seq)s by %(by)s: do not rely on it. Rests on %(rests)s."
                )
                % facts
            )
        elif x.fresh:
            yield Line(text=_("%(text)s Rests on %(rests)s, which is current.") % facts)
        else:
            yield Line(
                text=_("%(text)s Rests on %(rests)s, which is out of date: read it again first.") % facts
            )


def _observations(found: h.Handoff) -> Iterator[Line]:
    for x in found.observations:
        facts = {
            "id": x.id, "tool": x.tool, "resource": x.resource, "version": x.version, "at": stamp(x.at),
            "until": stamp(x.expires_at),
        }  # fmt: skip
        text = (
            _(
                "%(id)s %(resource)s, version %(version)s, read by %(tool)s at %(at)s; current until %(until)s."
            )
            if x.fresh
            else _(
                "%(id)s %(resource)s, version %(version)s, read by %(tool)s at %(at)s; OUT OF DATE since %(until)s."
            )
        )
        yield Line(text=text % facts, data=_json(x.value))


def _requests(found: h.Handoff) -> Iterator[Line]:
    for x in found.requests:
        facts = {
            "plan": str(x.plan), "digest": x.digest, "given": str(x.given), "needed": str(x.needed), "name": x.id,
            "until": stamp(x.until) if x.until else "–",
        }  # fmt: skip
        if x.what == "approval":
            text = _(
                "Approval of plan v%(plan)s (%(digest)s): %(given)s of %(needed)s given, until %(until)s."
            )
        else:
            text = _("The answer “%(name)s”, until %(until)s.")
        yield Line(text=text % facts)


def _decisions(found: h.Handoff) -> Iterator[Line]:
    for x in found.decisions:
        facts = {
            "at": stamp(x.at), "by": x.by, "what": str(_DID.get(x.what, x.what)) % {"subject": x.subject},
            "reason": x.reason,
        }  # fmt: skip
        text = _("%(at)s: %(by)s %(what)s.") % facts
        yield Line(text=_("%(text)s “%(reason)s”") % {"text": text, "reason": x.reason} if x.reason else text)


_DID: Final[dict[str, str | Promise]] = {
    "start": pgettext_lazy("decision", "started the run"),
    "revise": pgettext_lazy("decision", "revised the goal to %(subject)s"),
    "approve": pgettext_lazy("decision", "approved plan %(subject)s"),
    "reject": pgettext_lazy("decision", "rejected plan %(subject)s"),
    "ask": pgettext_lazy("decision", "asked for changes to plan %(subject)s"),
    "take_back": pgettext_lazy("decision", "took the approval of plan %(subject)s back"),
    "attest_happened": pgettext_lazy("decision", "stated that %(subject)s happened"),
    "attest_not_happened": pgettext_lazy("decision", "stated that %(subject)s did not happen"),
    "attest_obligation": pgettext_lazy("decision", "stated that %(subject)s is done"),
    "find_as_recorded": pgettext_lazy("decision", "found that the record of %(subject)s is right"),
    "find_happened": pgettext_lazy("decision", "found that %(subject)s happened, against the record"),
    "find_not_happened": pgettext_lazy(
        "decision", "found that %(subject)s did not happen, against the record"
    ),
    "find_happened_twice": pgettext_lazy("decision", "found that %(subject)s happened twice"),
}


def may(found: h.Handoff) -> str:
    """Whether the reader may take the next safe step; empty where nobody takes it or nobody is known to read."""
    right = found.next.right
    if right is None or found.next.you_may is None:
        return ""
    facts = {"right": str(Right(right).label)}
    if found.next.you_may:
        return _("You may take it (right “%(right)s”).") % facts
    return _("You may not take it: it takes the right “%(right)s”.") % facts


Lines = Callable[[h.Handoff], Iterator[Line]]
_SECTIONS: Final[dict[str, tuple[str | Promise, str | Promise, Lines]]] = {
    "asked": (gettext_lazy("What was asked, and what the run is committed to"), "", _asked),
    "stops": (gettext_lazy("Why it needs a person"), gettext_lazy("It does not."), _stops),
    "happened": (gettext_lazy("What certainly happened"), gettext_lazy("Nothing."), _happened),
    "doubt": (gettext_lazy("What may have happened"), gettext_lazy("Nothing is in doubt."), _doubt),
    "limits": (
        gettext_lazy("What is not allowed, and who said so"),
        gettext_lazy("Nothing. The agent is limited only by its permissions."),
        _limits,
    ),
    "never": (
        gettext_lazy("What must never be sent again"), gettext_lazy("Nothing was confirmed yet."), _never,
    ),
    "planned": (gettext_lazy("What is planned"), gettext_lazy("Nothing."), _planned),
    "obligations": (gettext_lazy("What was promised"), gettext_lazy("Nothing."), _obligations),
    "assumptions": (gettext_lazy("What is taken for true"), gettext_lazy("Nothing."), _assumptions),
    "observations": (gettext_lazy("What was read"), gettext_lazy("Nothing."), _observations),
    "requests": (gettext_lazy("What is asked of people"), gettext_lazy("Nothing."), _requests),
    "decisions": (gettext_lazy("Who decided what"), gettext_lazy("Nobody."), _decisions),
}  # fmt: skip
