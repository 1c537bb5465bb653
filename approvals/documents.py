"""Policies that are documents: JSON text of rules and checks, whose conditions are CEL over one step of a plan.

    {"rules": [{"name": "refund from 100 EUR up",
                "when": "tool == \\"refund_supplier\\" && cost >= money(\\"100.00\\")",
                "needed": 1, "groups": ["Finance"], "not_by": ["principal"], "stands_for": "2h"}],
     "checks": [{"name": "limit", "kind": "hard", "must": "cost == null || cost <= money(\\"5000.00\\")",
                 "sentence": "A refund is at most 5,000 EUR."}]}

A rule that applies to any step of the plan asks for `needed` people; with `groups`, for so many from any of them. All
rules that apply count together. A check must hold for every step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
from django.utils.translation import gettext as _

from approvals.expressions import ExpressionRefused, compiled
from approvals.policy import (
    PARTIAL,
    ApprovalRule,
    CheckKind,
    FailedCheck,
    Party,
    Requirement,
    Step,
    strictest,
)
from approvals.seen import Seen

LONGEST: Final = 50_000  #: characters of a document
MOST: Final = 50  #: rules, and checks
_LENGTH = re.compile(r"(?P<number>[1-9]\d{0,3})(?P<unit>[smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
_Title = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """When people must agree: how many, from which groups, who of them not, and for how long it stands."""

    name: _Name
    when: str
    needed: Annotated[int, msgspec.Meta(ge=1, le=20)] = 1
    groups: Annotated[tuple[_Title, ...], msgspec.Meta(max_length=20)] = ()
    not_by: Annotated[tuple[Party, ...], msgspec.Meta(max_length=10)] = ()
    stands_for: str = ""  #: "30m", "2h", "1d"; empty: as long as the installation says


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What must hold for every step of a plan that is approved."""

    name: _Name
    kind: CheckKind
    must: str
    sentence: Annotated[str, msgspec.Meta(min_length=1, max_length=300)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How much one plan may hold: more is refused as it is proposed, and the planner is told to split it."""

    #: Changes that cannot be undone. An approver types a phrase for each, and reads no more than a few.
    irreversible: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 3


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A policy as it is typed."""

    rules: Annotated[tuple[Rule, ...], msgspec.Meta(max_length=MOST)]
    checks: Annotated[tuple[Check, ...], msgspec.Meta(max_length=MOST)] = ()
    limits: Limits = Limits()


class DocumentRefused(ValueError):
    """The text is no policy; `problems` are sentences, each with where it is."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__(" ".join(problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRule:
    """What a rule says of a plan: to which steps it applies, and where it failed, which counts as applying."""

    rule: Rule
    steps: tuple[int, ...]
    failure: str = ""

    @property
    def applies(self) -> bool:
        return bool(self.steps or self.failure)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPolicy:
    """The policy that a document is, under its version."""

    version: str
    document: Document
    text: str

    @property
    def names(self) -> frozenset[str]:
        """What its expressions look at."""
        sources = [rule.when for rule in self.document.rules] + [c.must for c in self.document.checks]
        return frozenset().union(*(compiled(source).names for source in sources))

    @property
    def most_irreversible(self) -> int:
        """How many changes that cannot be undone one plan may hold."""
        return self.document.limits.irreversible

    def evaluate(self, steps: Sequence[Step]) -> Requirement:
        """What is asked for a plan of these steps. A rule that fails asks as if it applied, of one person at least."""
        plan = Seen(steps, self.names)
        rules = [judged for judged in self._rules(plan) if judged.applies]
        failed = tuple(self._checks(plan))
        failure = next((judged.failure for judged in rules if judged.failure), "")
        if not rules:
            # Whoever lets a plan through that a check stops has to be a person.
            return Requirement(
                needed=1 if failed else 0, not_by=PARTIAL if failed else frozenset(), failed=failed
            )
        asked = strictest([rule_of(judged.rule) for judged in rules])
        kept = asked.not_by | PARTIAL if failure else asked.not_by
        return replace(asked, failure=failure, failed=failed, not_by=kept)

    def judged(self, steps: Sequence[Step]) -> tuple[tuple[JudgedRule, ...], tuple[FailedCheck, ...]]:
        """Each rule's word on the plan, and the checks that it does not pass."""
        plan = Seen(steps, self.names)
        return tuple(self._rules(plan)), tuple(self._checks(plan))

    def _rules(self, plan: Seen) -> Iterator[JudgedRule]:
        for rule in self.document.rules:
            steps, failure = plan.where(compiled(rule.when), True)
            why = (
                _("Rule “%(name)s”, %(failure)s") % {"name": rule.name, "failure": failure} if failure else ""
            )
            yield JudgedRule(rule=rule, steps=steps, failure=why)

    def _checks(self, plan: Seen) -> Iterator[FailedCheck]:
        for check in self.document.checks:
            steps, failure = plan.where(compiled(check.must), False)
            if steps or failure:
                yield FailedCheck(
                    name=check.name, kind=check.kind, sentence=check.sentence, steps=steps, failure=failure
                )


@lru_cache(maxsize=256)
def policy_of(text: str, *, version: str) -> DocumentPolicy:
    """The policy that the text is. Raises DocumentRefused with all that is wrong with it."""
    document = _converted(_json(text))
    if problems := tuple(_problems(document)):
        raise DocumentRefused(*problems)
    return DocumentPolicy(version=version, document=document, text=text)


def rule_of(rule: Rule) -> ApprovalRule:
    """A document's rule among those of code, for what rules ask for together."""
    return ApprovalRule(
        name=rule.name, applies=lambda step: True, needed=rule.needed, stands_for=length_of(rule.stands_for),
        not_by=frozenset(rule.not_by), groups=rule.groups,
    )  # fmt: skip


def length_of(text: str) -> timedelta | None:
    """A length of time as a document writes it; None for none. Raises ValueError."""
    if not text:
        return None
    match = _LENGTH.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return timedelta(**{_UNITS[match["unit"]]: int(match["number"])})


def _json(text: str) -> Any:
    if len(text) > LONGEST:
        raise DocumentRefused(_("The document is longer than %(most)d characters.") % {"most": LONGEST})
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
        plain = json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        facts = {"line": error.lineno, "column": error.colno, "why": error.msg}
        raise DocumentRefused(
            _("Line %(line)d, column %(column)d: this is no JSON: %(why)s.") % facts
        ) from None
    except RecursionError:
        raise DocumentRefused(_("The document is nested too deeply.")) from None
    except UnicodeEncodeError:
        raise DocumentRefused(_unstorable()) from None
    except DocumentRefused:
        raise
    except ValueError:
        # Python reads no number of more than some thousand digits.
        raise DocumentRefused(_("A number in the document has too many digits.")) from None
    if b"\\u0000" in plain:
        raise DocumentRefused(_unstorable())
    return value


def _unstorable() -> str:
    return _("The document holds characters that no text can hold, such as half of a pair of code units.")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two fields with one name a reader sees both, and a computer one."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DocumentRefused(_("The field “%(name)s” stands twice in one object.") % {"name": twice})
    return made


def _no_constant(text: str) -> Any:
    raise DocumentRefused(_("“%(text)s” is no JSON.") % {"text": text})


def _converted(value: Any) -> Document:
    try:
        return msgspec.convert(value, Document)
    except msgspec.ValidationError as error:
        raise DocumentRefused(
            _("The document has not the form of a policy: %(why)s.") % {"why": error}
        ) from None


def _problems(document: Document) -> Iterator[str]:
    for name in _doubles([rule.name for rule in document.rules]):
        yield _("Two rules are called “%(name)s”.") % {"name": name}
    for name in _doubles([check.name for check in document.checks]):
        yield _("Two checks are called “%(name)s”.") % {"name": name}
    for rule in document.rules:
        yield from _expression(rule.when, rule.name, "when")
        try:
            length_of(rule.stands_for)
        except ValueError:
            facts = {"name": rule.name, "text": rule.stands_for}
            yield (
                _("Rule “%(name)s”, stands_for: “%(text)s” is no length of time; write 30m, 2h or 1d.")
                % facts
            )
    for check in document.checks:
        yield from _expression(check.must, check.name, "must")


def _doubles(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _expression(source: str, name: str, field: str) -> Iterator[str]:
    try:
        compiled(source)
    except ExpressionRefused as error:
        facts = {"name": name, "field": field, "line": error.line, "column": error.column, "why": str(error)}
        yield _("“%(name)s”, %(field)s, line %(line)d, column %(column)d: %(why)s") % facts
