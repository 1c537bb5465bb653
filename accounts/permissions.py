"""The things that people can be permitted, and on which kinds of objects each can be held."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.utils.translation import gettext_lazy


class Right(models.TextChoices):
    """The things that a person can be permitted. The values are permission codenames."""

    VIEW_RUNS = "view_runs", gettext_lazy("See runs")
    SEE_VALUES = "see_values", gettext_lazy("See sensitive values")
    START_RUNS = "start_runs", gettext_lazy("Start runs")
    OPERATE_RUNS = "operate_runs", gettext_lazy("Operate runs")
    RECONCILE_EFFECTS = "reconcile_effects", gettext_lazy("Reconcile effects")
    ATTEST_EFFECTS = "attest_effects", gettext_lazy("Attest effects")
    APPROVE_PLANS = "approve_plans", gettext_lazy("Approve plans")
    REVISE_GOALS = "revise_goals", gettext_lazy("Revise goals")
    REVOKE_CONSTRAINTS = "revoke_constraints", gettext_lazy("Revoke constraints")
    CANCEL_RUNS = "cancel_runs", gettext_lazy("Cancel runs")
    RESTART_RUNS = "restart_runs", gettext_lazy("Restart runs")
    REREDUCE_RUNS = "rereduce_runs", gettext_lazy("Re-reduce runs")
    MANAGE_POLICIES = "manage_policies", gettext_lazy("Manage policies")
    MANAGE_PEOPLE = "manage_people", gettext_lazy("Manage people")
    SEE_AUDIT = "see_audit", gettext_lazy("See the whole audit log")


#: Rights about an organisation as a whole.
_OF_TENANT: Final = {Right.MANAGE_PEOPLE, Right.SEE_AUDIT}
#: What no single run could be the place of: it does not exist yet, or it is not about a run.
_NOT_OF_RUN: Final = _OF_TENANT | {Right.START_RUNS, Right.MANAGE_POLICIES}

#: What each kind of object can carry. A right held on a tenant counts for all its agents and runs, one held on an
#: agent for all its runs.
ON_TENANT: Final = tuple(Right)
ON_AGENT: Final = tuple(right for right in Right if right not in _OF_TENANT)
ON_RUN: Final = tuple(right for right in Right if right not in _NOT_OF_RUN)

#: Who may do something with a run may see it. The database says the same in `handoff_rights_giving`.
_WITH_SIGHT: Final = tuple(right for right in ON_RUN if right is not Right.SEE_VALUES)


def giving(right: Right) -> tuple[Right, ...]:
    """The rights of which each is enough for what `right` permits."""
    return _WITH_SIGHT if right is Right.VIEW_RUNS else (right,)


def declared(rights: tuple[Right, ...]) -> tuple[tuple[str, str], ...]:
    """The `permissions` of a model that carries these rights."""
    return tuple((right.value, right.value) for right in rights)
