"""Which steps need people's agreement, how many people, and for how long it stands.

A policy is code with a version. Whatever goes wrong inside one means that a person must approve, never that
none need to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from accounts.rights import Right

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a policy is told about one step of a plan."""

    tool: str
    arguments: Mapping[str, object]  #: validated, as they will be executed
    cost: Decimal | None  #: in the currency the tool names; None: the step costs nothing known
    reversible: bool
    tenant: str = ""  #: its short name
    agent: str = ""
    principal: str = ""  #: the sign-in name of the person on whose behalf the run acts
    system: str = ""
    name: str = ""  #: of the step


class Party(StrEnum):
    """Someone with a part in the run, who may be kept from approving its plan."""

    PRINCIPAL = "principal"  #: on whose behalf the run acts
    CREATOR = "creator"  #: who started it
    PLAN_AUTHOR = "plan_author"  #: who asked for the changes that the plan followed, or that it be undone
    GOAL_REVISER = "goal_reviser"
    CONSTRAINT_REVOKER = "constraint_revoker"
    OTHER_TENANT = "other_tenant"  #: who is an active member of another tenant too, looked up at each use


#: Kept from approving where a policy could not say who is.
PARTIAL = frozenset({Party.PRINCIPAL, Party.PLAN_AUTHOR})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule:
    """For the steps it applies to: how many distinct people must approve."""

    name: str
    applies: Callable[[Step], bool]
    needed: int = 1
    right: Right = Right.APPROVE_PLANS
    stands_for: timedelta | None = None  #: None: as long as the installation says
    not_by: frozenset[Party] = frozenset()
    groups: tuple[str, ...] = ()  #: titles; the people must be in any of these groups, if any are named


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """At least so many of those who approve are, when it counts, in one of these groups."""

    needed: int
    groups: tuple[str, ...]  #: titles


class CheckKind(StrEnum):
    """What follows from a check that fails."""

    HARD = "hard"  #: nobody can approve
    SOFT = "soft"  #: an approver can, by saying so and why


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCheck:
    """A check that a plan does not pass."""

    name: str
    kind: CheckKind
    sentence: str  #: what must be so, in the policy's words
    steps: tuple[int, ...]  #: which steps do not pass, from 0
    failure: str = ""  #: why it could not be told, where that is the case: that is no pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What a policy asks for a plan. `needed` 0: approved by the policy.

    A request is granted when `needed` people approved and every quorum is met.
    """

    needed: int
    right: Right = Right.APPROVE_PLANS
    stands_for: timedelta | None = None
    not_by: frozenset[Party] = frozenset()
    because: tuple[str, ...] = ()  #: names of the rules that asked
    failure: str = ""  #: what went wrong in the policy, where that is why a person must approve
    quorums: tuple[Quorum, ...] = ()
    failed: tuple[FailedCheck, ...] = ()


class Policy(Protocol):
    """What an agent names. Another version is another policy: a change of it voids what was decided under the
    old.
    """

    @property
    def version(self) -> str: ...
    def evaluate(self, steps: Sequence[Step]) -> Requirement: ...


def names_of(policy: Policy) -> frozenset[str]:
    """Which of a step's values the policy looks at, where it can say so; nothing for one that is code."""
    names: frozenset[str] = getattr(policy, "names", frozenset())
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePolicy:
    """The policy that is a list of rules: each that applies to any step is heeded, the strictest of each kind
    counts.
    """

    version: str
    rules: tuple[ApprovalRule, ...]
    #: How many changes that cannot be undone one plan may hold; None: any number.
    most_irreversible: int | None = None

    def __post_init__(self) -> None:
        if not self.version.strip():
            raise ValueError("version: a policy needs one, since approvals are bound to it")
        if len({rule.right for rule in self.rules}) > 1:
            raise ValueError(
                "rules: all must ask for the same right, since a request asks the holders of one"
            )
        if any(rule.needed < 1 for rule in self.rules):
            raise ValueError("rules: a rule asks for one person or more; leave it out where nobody is needed")

    def evaluate(self, steps: Sequence[Step]) -> Requirement:
        asked = [rule for rule in self.rules if any(rule.applies(step) for step in steps)]
        if not asked:
            return Requirement(needed=0)
        return strictest(asked)


def strictest(asked: Sequence[ApprovalRule]) -> Requirement:
    """What rules ask for together, of which there is at least one: the strictest of each kind."""
    return Requirement(
        needed=max(rule.needed for rule in asked),
        right=asked[0].right,
        stands_for=min((rule.stands_for for rule in asked if rule.stands_for), default=None),
        not_by=frozenset().union(*(rule.not_by for rule in asked)),
        because=tuple(rule.name for rule in asked),
        quorums=_quorums(asked),
    )


def _quorums(asked: Sequence[ApprovalRule]) -> tuple[Quorum, ...]:
    """One for each set of groups, the largest: what is asked twice of the same people is asked once."""
    most: dict[tuple[str, ...], int] = {}
    for rule in asked:
        if rule.groups:
            groups = tuple(sorted(set(rule.groups)))
            most[groups] = max(most.get(groups, 0), rule.needed)
    return tuple(Quorum(needed=needed, groups=groups) for groups, needed in sorted(most.items()))


def most_irreversible(policy: Policy) -> int | None:
    """How many changes that cannot be undone the policy allows in one plan; None: it says nothing of that."""
    return getattr(policy, "most_irreversible", None)


def requirement(*, policy: Policy, steps: Sequence[Step]) -> Requirement:
    """What the policy asks for these steps. Where the policy raises, one person must approve."""
    try:
        asked = policy.evaluate(steps)
    except Exception as error:
        # Whatever it was: not knowing whether people must agree is a reason to ask them.
        log.exception("policy failed, one approval is needed")
        return Requirement(needed=1, not_by=PARTIAL, failure=type(error).__name__)
    if asked.needed < 0:
        return Requirement(needed=1, not_by=PARTIAL, failure="negative number of people")
    return asked
