"""What agreement was asked for, who decided what, and which attempts were refused.

`Request` and `Decision` are projections of the run's events: each value comes from the caller, none is made
here.
"""

from __future__ import annotations

from typing import ClassVar, Final

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Tenant
from accounts.origin import origin

#: Characters of a reason that the agent and other people have to understand.
LEAST_REASON: Final = 10


class RequestState(models.TextChoices):
    """Where a request for agreement stands. `pending` and `valid` are open, the rest is final."""

    PENDING = "pending", _("Waiting for approval")
    VALID = "valid", _("Valid")
    CONSUMED = "consumed", _("Used")
    VOIDED = "voided", _("No longer valid")
    EXPIRED = "expired", _("Expired")
    REJECTED = "rejected", _("Rejected")
    CHANGES_ASKED = "changes_asked", _("Changes asked for")
    TAKEN_BACK = "taken_back", _("Taken back")


OPEN_STATES = (RequestState.PENDING, RequestState.VALID)


class Verdict(models.TextChoices):
    """What a person decided about a request."""

    APPROVE = "approve", _("Approve")
    REJECT = "reject", _("Reject")
    ASK = "ask", _("Ask for changes")
    TAKE_BACK = "take_back", _("Take back")


class Request(models.Model):
    """One question to people: do you agree to these bytes, under these conditions, until then?

    The binding (all but state, closed_at and cause) never changes, and a closed request changes no more: a
    trigger holds both.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    #: What is decided about, opaque here: "run_AB12:3" is a run's plan version.
    subject = models.CharField(max_length=200)
    digest = models.CharField(max_length=200)
    #: Canonical JSON text of an object, as digested by the caller.
    conditions = models.TextField()
    conditions_digest = models.CharField(max_length=200)
    policy_version = models.CharField(max_length=100)
    #: Who may decide: holders of this right on this object.
    codename = models.CharField(max_length=100)
    object_type = models.ForeignKey(ContentType, on_delete=models.PROTECT, related_name="+")
    object_pk = models.CharField(max_length=255)
    #: How many distinct people must approve; 0: the policy alone approved.
    needed = models.PositiveSmallIntegerField()
    #: {person id: the rule that excludes them}.
    excluded = models.JSONField(default=dict)
    #: [{"needed", "groups": [title]}]: how many of those who approve must be, when it counts, in one of the groups.
    quorums = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    #: Parties that are looked up at each use, since no list of people could be kept: ["other_tenant"].
    not_by = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    opened_at = models.DateTimeField()
    #: From this moment on neither the request nor an approval given on it stands.
    expires_at = models.DateTimeField()
    state = models.CharField(max_length=20, choices=RequestState)
    closed_at = models.DateTimeField(null=True)
    #: {"changes": [{"what", "from", "to"}, ...]}: why it was voided.
    cause = models.JSONField(null=True)

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "subject"], name="approvals_request_subject"),
            models.Index(
                fields=["expires_at"],
                name="approvals_request_expiry",
                condition=Q(state__in=["pending", "valid"]),
            ),
            models.Index(
                fields=["tenant", "expires_at"],
                name="approvals_request_pending",
                condition=Q(state="pending"),
            ),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["tenant", "subject"],
                condition=Q(state__in=["pending", "valid"]),
                name="approvals_one_open_request",
            ),
            models.CheckConstraint(
                condition=Q(state__in=RequestState.values), name="approvals_request_state"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["pending", "valid"], closed_at__isnull=True)
                | (~Q(state__in=["pending", "valid"]) & Q(closed_at__isnull=False)),
                name="approvals_request_closed_at",
            ),
            models.CheckConstraint(
                condition=~Q(state="voided") | Q(cause__isnull=False),
                name="approvals_request_voided_has_cause",
            ),
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("opened_at")), name="approvals_request_expires_later"
            ),
            models.CheckConstraint(
                condition=Q(subject__regex=r"^\S+$"), name="approvals_request_subject_plain"
            ),
            models.CheckConstraint(
                condition=Q(digest__regex=r"^\S+$"), name="approvals_request_digest_plain"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject} {self.state}"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES


class Decision(models.Model):
    """What one person decided about one request. Append-only; a database trigger holds that."""

    #: Made with the form; the second send of a form is the same decision.
    submission = models.UUIDField(primary_key=True, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    request = models.ForeignKey(Request, on_delete=models.PROTECT, related_name="decisions")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=20, choices=Verdict)
    reason = models.TextField(blank=True)
    at = models.DateTimeField()
    #: What the person's page showed.
    digest = models.CharField(max_length=200)
    conditions_digest = models.CharField(max_length=200)
    #: False: the matter was already decided the same way; it never counts.
    needed = models.BooleanField()
    #: The request after this decision, and how many approvals it then had.
    state_after = models.CharField(max_length=20, choices=RequestState)
    approvals_after = models.PositiveSmallIntegerField()
    origin = models.JSONField(default=origin)  #: via, ip, request_id

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "-at"], name="approvals_decision_at")
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["request", "person"],
                condition=Q(verdict="approve"),
                name="approvals_one_approval_per_person",
            ),
            models.CheckConstraint(
                condition=Q(verdict__in=Verdict.values), name="approvals_decision_verdict"
            ),
            models.CheckConstraint(
                condition=Q(state_after__in=RequestState.values), name="approvals_decision_state_after"
            ),
            models.CheckConstraint(
                condition=~Q(verdict__in=["reject", "ask"]) | Q(reason__regex=r"\S"),
                name="approvals_decision_has_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} {self.request_id}"


class Attempt(models.Model):
    """One thing that somebody tried and was refused. Append-only; a database trigger holds that."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", null=True)
    #: None: nobody was signed in.
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True
    )
    #: What was tried: "approve", "reconcile", …
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    #: The version or digest that the person's page showed; blank where the page had none.
    seen = models.CharField(max_length=200, blank=True)
    #: Why it was refused: a code for filters, and the facts.
    refusal = models.CharField(max_length=60)
    detail = models.JSONField(default=dict)
    #: What the person had typed.
    reason = models.TextField(blank=True)
    at = models.DateTimeField()
    ip = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=64, blank=True)

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "-at"], name="approvals_attempt_at"),
            models.Index(fields=["subject"], name="approvals_attempt_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}: {self.refusal}"


class OpenedValue(models.Model):
    """That a person was shown the whole of an over-long value of a plan. Append-only; a trigger holds that."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=200)  #: of the plan
    number = models.PositiveIntegerField()  #: of the value in that plan
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["tenant", "digest", "person", "number"], name="approvals_openedvalue_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.digest} {self.number}"


class PolicyVersion(models.Model):
    """One version of the policy that a tenant holds for an agent, as it was typed. Append-only by a trigger."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    agent = models.CharField(max_length=80)
    number = models.PositiveIntegerField()
    text = models.TextField()
    digest = models.CharField(max_length=80)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = models.TextField()
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "number"], name="approvals_policyversion_once"
            ),
            models.CheckConstraint(
                condition=Q(agent__regex=r"^\S+$", number__gte=1), name="approvals_policyversion_plain"
            ),
            models.CheckConstraint(
                condition=Q(reason__regex=r"\S"), name="approvals_policyversion_has_reason"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """What plans and approvals are bound to; PostgreSQL makes the same (handoff_policy_in_force)."""
        return f"{self.agent}/held/{self.number}"


class PolicyRelease(models.Model):
    """That a version became the policy in force for an agent, the latest release counts. Append-only.

    Without a number it is the policy of the agent's own code again.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    agent = models.CharField(max_length=80)
    number = models.PositiveIntegerField(null=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = models.TextField()
    at = models.DateTimeField()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "agent", "-id"], name="approvals_policyrelease_latest")
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(condition=Q(reason__regex=r"\S"), name="approvals_policyrelease_reason"),
        ]

    def __str__(self) -> str:
        return f"{self.agent} {self.number}"
