"""What people stated about an effect, in words: never a receipt, and never an answer of the other system."""

from __future__ import annotations

from django.utils.translation import gettext as _

from runs.machine import state as s
from runs.pages import words

SOURCE = "attestation"
FOUND = "finding"


def counting(effect: s.Effect) -> tuple[s.Attestation, ...]:
    """The statements about the latest send. What was stated of an earlier one says nothing about it."""
    return tuple(a for a in effect.attestations if a.seq > effect.last_send.seq)


def behind(effect: s.Effect) -> tuple[s.Attestation, ...]:
    """The statements that settled the effect; none where a receipt or an answer did."""
    receipt = effect.receipt
    if receipt is None or receipt.source != SOURCE:
        return ()
    sent = max(send.seq for send in effect.sends if send.seq < receipt.seq)
    same = (receipt.executed, receipt.reference)
    between = [a for a in effect.attestations if sent < a.seq < receipt.seq]
    return tuple(a for a in between if (a.happened, a.reference) == same)


def by(effect: s.Effect) -> str:
    """Who settled the effect by what they stated, by name; empty where nobody did."""
    return both([a.name for a in behind(effect)] or found_by(effect))


def found_by(effect: s.Effect) -> list[str]:
    """Who found it to be so against what was recorded before; nobody where that is not how it is settled."""
    receipt = effect.receipt
    if receipt is None or receipt.source != FOUND:
        return []
    finding = s.Finding.HAPPENED if receipt.executed else s.Finding.NOT_HAPPENED
    same = (finding.value, receipt.reference)
    return [x.name for x in effect.findings if x.seq < receipt.seq and (x.finding, x.reference) == same]


def both(names: list[str]) -> str:
    """Names inside a sentence, the last one with "and"."""
    if len(names) < 2:
        return "".join(names)
    facts = {"names": words.joined(names[:-1]), "last": names[-1]}
    return _("%(names)s and %(last)s") % facts


def sentence(effect: s.Effect) -> str:
    """Who stated it and what that is not; empty where nobody did."""
    names = by(effect)
    return _("Stated by %(names)s, not an answer of the other system.") % {"names": names} if names else ""
