"""Tables of runs and their constraints. Rows are written by `ledger` and `recovery` only.

`Event` is the truth; every other table but `Claim`, `Submission`, `Working`, `Note`, `Artifact`, `Worker`, `Wake` and
`Sweep` is a projection of it, or a `Summary`, and can be rebuilt. What PostgreSQL can hold is held here; its functions
and triggers are in the migrations.
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Length
from django.db.models.lookups import LessThanOrEqual

from accounts.models import Tenant
from accounts.origin import origin
from accounts.permissions import ON_AGENT, ON_RUN, declared
from runs.limits import LONGEST_TEXT
from runs.machine.state import TERMINAL, WORKER_MOVES, EffectStatus, State
from runs.machine.waits import WaitKind

ID_PATTERN = r"^\S+$"
HASH_PATTERN = r"^sha256:[0-9a-f]{64}$"
_STATES = [s.value for s in State]
HELD = [EffectStatus.IN_FLIGHT.value, EffectStatus.UNKNOWN.value, EffectStatus.CONFIRMED.value]
CLOSED = sorted(s.value for s in TERMINAL)


class Agent(models.Model):
    """An agent as a tenant knows it: what people hold rights on."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=100)
    title = models.CharField(max_length=200)

    class Meta:
        default_permissions = ()
        permissions = declared(ON_AGENT)
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "name"], name="runs_agent_once"),
            models.CheckConstraint(condition=Q(name__regex=ID_PATTERN), name="runs_agent_name_plain"),
        ]

    def __str__(self) -> str:
        return self.name


class Grant(models.Model):
    """What a principal lent: to one run, or to all that name it and their children. Only its end is ever written.

    `session_key`: it ends with that session of the principal. `why` and `by` say how it ended before its time.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    principal = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+")
    scopes = ArrayField(models.CharField(max_length=100))
    budget = models.DecimalField(null=True)
    session_key = models.CharField(max_length=40, default="")
    lent_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True)
    why = models.TextField(default="")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(budget__isnull=True) | Q(budget__gte=0), name="runs_grant_budget"
            ),
            models.CheckConstraint(condition=Q(expires_at__gt=F("lent_at")), name="runs_grant_lasts"),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=False) | Q(why="", by__isnull=True), name="runs_grant_end"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["session_key"], condition=~Q(session_key=""), name="runs_grant_session"),
        ]

    def __str__(self) -> str:
        return f"grant {self.id}"


class GrantBalance(models.Model):
    """What the sends on a grant with a budget have used: reserved or spent. Kept by a trigger on the effects."""

    grant = models.OneToOneField(Grant, on_delete=models.PROTECT, primary_key=True, related_name="balance")
    used = models.DecimalField(default=0)

    def __str__(self) -> str:
        return f"{self.grant_id}: {self.used}"


class Run(models.Model):
    """A run's projection, its lease, and the head of its log."""

    id = models.CharField(max_length=32, primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="runs")
    agent_version = models.CharField(max_length=50)
    lineage = models.CharField(max_length=32)
    predecessor = models.OneToOneField("self", on_delete=models.PROTECT, null=True, related_name="successor")
    parent = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="started", db_index=False
    )
    start_key = models.CharField(max_length=200)
    principal = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()

    goal = models.TextField()
    goal_version = models.IntegerField(default=1)
    plan_version = models.IntegerField(default=0)
    state = models.CharField(max_length=20)
    direction = models.CharField(max_length=10, default="forward")
    before = models.CharField(max_length=20, default="")
    since = models.DateTimeField()
    reasons = ArrayField(models.CharField(max_length=40), default=list)
    cancel_requested = models.BooleanField(default=False)

    seq = models.IntegerField(default=0)
    head = models.BinaryField(default=b"")
    at = models.DateTimeField()
    schema_version = models.IntegerField(default=1)

    wake_at = models.DateTimeField(null=True)
    claims = models.IntegerField(default=0)  #: since the last event
    lease_token = models.BigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    lease_holder = models.CharField(max_length=200, default="")
    grant = models.ForeignKey(Grant, on_delete=models.PROTECT, null=True, related_name="runs")

    class Meta:
        default_permissions = ()
        permissions = declared(ON_RUN)
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "agent", "start_key"], name="runs_run_start_key"),
            models.CheckConstraint(condition=Q(id__regex=r"^run_[0-9A-Z]+$"), name="runs_run_id_plain"),
            models.CheckConstraint(condition=Q(state__in=_STATES), name="runs_run_state"),
            models.CheckConstraint(condition=Q(direction__in=["forward", "undo"]), name="runs_run_direction"),
            models.CheckConstraint(
                condition=~Q(state__in=sorted(s.value for s in WORKER_MOVES)) | Q(wake_at__isnull=False),
                name="runs_run_wakes",
            ),
            models.CheckConstraint(condition=Q(seq__gte=0), name="runs_run_seq"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["id"], condition=~Q(state__in=CLOSED), name="runs_run_open"),
            models.Index(fields=["tenant", "state"], name="runs_run_tenant_state"),
            models.Index(fields=["tenant", "-created_at"], name="runs_run_tenant_created"),
        ]

    def __str__(self) -> str:
        return self.id


class Event(models.Model):
    """One immutable fact. `body` is the stored text; it is None once erased, which leaves its digest and the
    chain.
    """

    pk = models.CompositePrimaryKey("run_id", "seq")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="events", db_index=False)
    seq = models.IntegerField()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    type = models.CharField(max_length=40)
    version = models.SmallIntegerField()
    at = models.DateTimeField()
    actor_kind = models.CharField(max_length=10)
    actor_id = models.CharField(max_length=100)
    actor_name = models.CharField(max_length=200)
    state_before = models.CharField(max_length=20)
    state_after = models.CharField(max_length=20)
    body = models.TextField(null=True)  # noqa: DJ001  null is "erased", which an empty text is not
    body_digest = models.BinaryField()
    previous = models.BinaryField()
    hash = models.BinaryField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(condition=Q(seq__gte=1), name="runs_event_seq"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}/{self.seq} {self.type}"


class PlanVersion(models.Model):
    """A plan version: its document stands in the event at `seq`."""

    pk = models.CompositePrimaryKey("run_id", "version")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="plans", db_index=False)
    version = models.IntegerField()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=80)
    goal_version = models.IntegerField()
    constraints_digest = models.CharField(max_length=80)
    policy_version = models.CharField(max_length=100)
    steps = models.IntegerField()
    irreversible = models.IntegerField()
    by_policy = models.BooleanField()
    seq = models.IntegerField()
    voided_seq = models.IntegerField(null=True)

    def __str__(self) -> str:
        return f"{self.run_id} v{self.version}"


class Effect(models.Model):
    """One use of a writing tool. Its arguments stand in the event at `intent_seq`."""

    pk = models.CompositePrimaryKey("run_id", "number")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="effects", db_index=False)
    number = models.IntegerField()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    lineage = models.CharField(max_length=32)
    step = models.CharField(max_length=200)
    tool = models.CharField(max_length=100)
    system = models.CharField(max_length=100)
    operation_id = models.CharField(max_length=300)
    key = models.CharField(max_length=64)
    round = models.IntegerField()
    arguments_digest = models.CharField(max_length=80)
    title = models.TextField()
    reversible = models.BooleanField()
    status = models.CharField(max_length=20)
    intent_seq = models.IntegerField()
    send_seq = models.IntegerField()
    receipt_seq = models.IntegerField(null=True)
    reference = models.CharField(max_length=300)
    undoes_run = models.CharField(max_length=32, default="", db_default="")
    undoes_effect = models.IntegerField(null=True)
    grant = models.ForeignKey(
        Grant, on_delete=models.DO_NOTHING, null=True, related_name="+", db_constraint=False, db_index=False
    )
    cost = models.DecimalField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["run", "key"], name="runs_effect_key"),
            models.UniqueConstraint(
                fields=["operation_id", "system", "lineage"],
                condition=Q(status__in=HELD),
                name="runs_effect_held_once",
            ),
            models.CheckConstraint(
                condition=Q(status__in=[s.value for s in EffectStatus]), name="runs_effect_status"
            ),
            models.CheckConstraint(
                condition=Q(system__regex=ID_PATTERN, operation_id__regex=ID_PATTERN),
                name="runs_effect_ids_plain",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            # Of columns that never move, so that a receipt stays a heap-only update.
            models.Index(fields=["undoes_run"], condition=~Q(undoes_run=""), name="runs_effect_undoes"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} E-{self.number} {self.status}"


class Constraint(models.Model):
    """An accepted constraint."""

    pk = models.CompositePrimaryKey("run_id", "number")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="constraints", db_index=False)
    number = models.IntegerField()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()
    source_kind = models.CharField(max_length=40)
    source_ref = models.CharField(max_length=300)
    source_version = models.CharField(max_length=100)
    seq = models.IntegerField()
    name = models.CharField(max_length=100, default="", db_default="")
    predicate = models.TextField(default="", db_default="")
    withdrawn_seq = models.IntegerField(null=True)
    #: The version at its source that the run knows of and has not accepted; empty where there is none.
    amended_version = models.CharField(max_length=100, default="", db_default="")

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["source_ref", "source_version"], name="runs_constraint_source"),
            # Those that may still have to be told, in the order in which they are.
            models.Index(
                fields=["source_ref", "run"],
                condition=Q(withdrawn_seq__isnull=True),
                name="runs_constraint_holds",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} C-{self.number}"


class Statement(models.Model):
    """One version of a constraint that is held here, or its withdrawal. Append-only; the latest of a `ref` counts.

    A row after the first takes the tenant's fence, and none follows a withdrawal: triggers hold both.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=40)  #: person, policy or tenant
    ref = models.CharField(max_length=60)  #: this one constraint, over all its versions
    version = models.PositiveIntegerField()
    name = models.CharField(max_length=100)
    text = models.TextField()
    predicate = models.TextField(default="", blank=True)
    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="+", null=True
    )  #: None: all agents
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", null=True)  #: for this run alone
    withdrawn = models.BooleanField(default=False)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = models.TextField()
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "ref", "version"], name="runs_statement_once"),
            models.CheckConstraint(condition=Q(ref__regex=ID_PATTERN), name="runs_statement_ref_plain"),
            models.CheckConstraint(
                condition=Q(name__regex=r"\S", text__regex=r"\S", reason__regex=r"\S", version__gte=1),
                name="runs_statement_says",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.ref} {self.version}"


class Told(models.Model):
    """That every run which a version of a constraint concerns was told of it. Append-only; else the sweep looks."""

    statement = models.OneToOneField(
        Statement, on_delete=models.PROTECT, primary_key=True, related_name="told"
    )
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.statement_id} told"


class Assumption(models.Model):
    """Something a plan version takes for true, with its basis: numbers of observations and constraints of the run."""

    pk = models.CompositePrimaryKey("run_id", "plan_version", "number")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="assumptions", db_index=False)
    plan_version = models.IntegerField()
    number = models.IntegerField()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    text = models.TextField()
    observations = ArrayField(models.IntegerField())
    constraints = ArrayField(models.IntegerField())
    broken_seq = models.IntegerField(null=True)
    broken_by = models.TextField()

    def __str__(self) -> str:
        return f"{self.run_id} v{self.plan_version} assumption {self.number}"


class Obligation(models.Model):
    """Something a run promised."""

    pk = models.CompositePrimaryKey("run_id", "number")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="obligations", db_index=False)
    number = models.IntegerField()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()
    due_at = models.DateTimeField(null=True)
    opened_seq = models.IntegerField()
    discharged_seq = models.IntegerField(null=True)
    handed_over = models.BooleanField()
    to_whom = models.CharField(max_length=300, default="", db_default="")
    owner = models.CharField(max_length=100, default="", db_default="")  #: a person's id, empty: the run's
    owner_name = models.CharField(max_length=300, default="", db_default="")
    overdue_seq = models.IntegerField(null=True)

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["due_at"],
                condition=Q(discharged_seq__isnull=True, due_at__isnull=False),
                name="runs_obligation_open_due",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} B-{self.number}"


class Observation(models.Model):
    """The latest reading of one external fact. Its value stands in the event at `seq`."""

    pk = models.CompositePrimaryKey("run_id", "number")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="observations", db_index=False)
    number = models.IntegerField()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    tool = models.CharField(max_length=100)
    resource = models.CharField(max_length=300)
    version = models.CharField(max_length=300)
    observed_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    seq = models.IntegerField()

    def __str__(self) -> str:
        return f"{self.run_id} O-{self.number}"


class Wait(models.Model):
    """What a step of a run waits for, or waited for. The latest of each step."""

    pk = models.CompositePrimaryKey("run_id", "step")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="waits", db_index=False)
    step = models.CharField(max_length=200)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=10)
    signal = models.CharField(max_length=100)
    began_seq = models.IntegerField()
    until = models.DateTimeField(null=True)
    ended_seq = models.IntegerField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(kind__in=[k.value for k in WaitKind])
                & (~Q(kind=WaitKind.TIMER.value) | Q(until__isnull=False)),
                name="runs_wait_ends",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.step} waits for {self.kind}"


class Child(models.Model):
    """A run that a step of another run started. `child` is its latest successor; its parent waits until `ended_seq`."""

    pk = models.CompositePrimaryKey("run_id", "seq")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="children", db_index=False)
    seq = models.IntegerField()
    name = models.CharField(max_length=100)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    step = models.CharField(max_length=200)
    child = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_index=False)
    ended_seq = models.IntegerField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["child"], name="runs_child_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["child"], condition=Q(ended_seq__isnull=True), name="runs_child_open"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.step} {self.child_id}"


class Claim(models.Model):
    """A worker took a run: with what token, and which next safe action the rows gave at that moment. Append-
    only.
    """

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="taken")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    token = models.BigIntegerField()
    seq = models.IntegerField()
    worker = models.CharField(max_length=200)
    answer = models.JSONField()
    #: The database's system identifier and timeline, and how many restores were declared.
    history = models.CharField(max_length=100)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["run", "token"], name="runs_claim_token"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} token {self.token}"


class Restore(models.Model):
    """Somebody said that this database was restored from a copy: its log may have lost what happened. Append-only."""

    note = models.TextField()
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"restore at {self.at}"


class Submission(models.Model):
    """One send of one form: a second one gets the first one's result. Append-only."""

    id = models.UUIDField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", null=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    action = models.CharField(max_length=60)
    seq = models.IntegerField(null=True)
    result = models.JSONField(default=dict)
    at = models.DateTimeField()
    origin = models.JSONField(default=origin)  #: via, ip, request_id

    def __str__(self) -> str:
        return f"{self.action} {self.run_id}"


class WorkingKind(models.TextChoices):
    """How a person is named on a run."""

    CLAIM = "claim"  #: who says to be working on it
    ASSIGNMENT = "assignment"  #: who was asked to


class Working(models.Model):
    """Who works on a run, or was asked to: for people, who else looks at it. It blocks nobody and moves no run.

    At most one of each kind is open for a run. Only its renewal and its end are ever written: a trigger holds that. A
    claim whose time is over stands open until somebody claims anew; `runs.working` says which count.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="working", db_index=False)
    kind = models.CharField(max_length=10)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()
    active_at = models.DateTimeField()  #: when the person last did something about the run
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["run", "kind"], condition=Q(ended_at__isnull=True), name="runs_working_one"
            ),
            models.CheckConstraint(condition=Q(kind__in=WorkingKind.values), name="runs_working_kind"),
            models.CheckConstraint(
                condition=~Q(kind=WorkingKind.CLAIM) | Q(by=F("person")), name="runs_working_own"
            ),
            models.CheckConstraint(
                condition=Q(active_at__gte=F("at"))
                & (Q(ended_at__isnull=True) | Q(ended_at__gte=F("active_at"))),
                name="runs_working_times",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["person"], condition=Q(ended_at__isnull=True), name="runs_working_person"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.run_id}"


class Note(models.Model):
    """What a person wrote about a run for the next one. Append-only; it is no event, and moves no run."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="notes")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()
    at = models.DateTimeField()
    origin = models.JSONField(default=origin)  #: via, ip, request_id

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(condition=Q(text__regex=r"\S"), name="runs_note_says"),
            models.CheckConstraint(
                condition=LessThanOrEqual(Length("text"), Value(LONGEST_TEXT)), name="runs_note_length"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "-at"], name="runs_note_tenant_at"),
        ]

    def __str__(self) -> str:
        return f"note on {self.run_id}"


class Artifact(models.Model):
    """Bytes in the storage, found by their hash within a tenant. Written after them, so that none lacks its bytes.

    Which run they belong to is said by its events. The same bytes of two tenants stand there twice.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    hash = models.CharField(max_length=71)
    size = models.BigIntegerField()
    media_type = models.CharField(max_length=100)
    location = models.CharField(max_length=200, unique=True)  #: the file's name in the storage
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "hash"], name="runs_artifact_once"),
            models.CheckConstraint(condition=Q(hash__regex=HASH_PATTERN), name="runs_artifact_hash"),
            models.CheckConstraint(condition=Q(size__gte=0), name="runs_artifact_size"),
        ]

    def __str__(self) -> str:
        return self.hash


class Summary(models.Model):
    """What a summariser made of a run's events up to one: an artifact that may be lost, and is made again then."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="summaries", db_index=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    upto = models.IntegerField()
    summariser = models.CharField(max_length=100)
    hash = models.CharField(max_length=71)
    location = models.CharField(max_length=200, unique=True)
    made_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["run", "upto", "summariser"], name="runs_summary_once"),
            models.CheckConstraint(condition=Q(hash__regex=HASH_PATTERN), name="runs_summary_hash"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} up to {self.upto}"


class Worker(models.Model):
    """What a worker serves, and when it was last heard of."""

    name = models.CharField(max_length=200, primary_key=True)
    serves = ArrayField(models.CharField(max_length=160))
    started_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(condition=Q(last_seen_at__gte=F("started_at")), name="runs_worker_seen"),
        ]

    def __str__(self) -> str:
        return self.name


class Wake(models.Model):
    """When the sweep last woke a run. A hint: it may be lost at any time, and refers to no row."""

    run_id = models.CharField(max_length=32, primary_key=True)
    at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.run_id} at {self.at}"


class Sweep(models.Model):
    """The one row that says when the last sweep ended."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    at = models.DateTimeField()
    woken = models.IntegerField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(condition=Q(id=1), name="runs_sweep_one"),
        ]

    def __str__(self) -> str:
        return f"sweep at {self.at}"


class ConfigurationKept(models.Model):
    """What a configured document of constraints said when it was last heard. `runs.configuration` alone writes it.

    It belongs to the installation, as the agents that name it do, and to no tenant. Another document takes a lock that
    every send shares that rests on it: a trigger holds that.
    """

    ref = models.CharField(primary_key=True, max_length=300)  #: its path or url
    etag = models.CharField(max_length=100)
    version = models.CharField(max_length=100)  #: its ETag, else its digest
    document = models.TextField()  #: empty while it was never heard
    digest = models.CharField(max_length=80)
    asked_at = models.DateTimeField(null=True)  #: when the last answer was asked for
    good_until = models.DateTimeField(null=True)  #: how long that answer counts
    tried_at = models.DateTimeField()
    failure = models.TextField()  #: why the latest try gave no answer; empty where it did

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(asked_at__isnull=True, good_until__isnull=True, digest="")
                | Q(asked_at__isnull=False, good_until__gt=F("asked_at")) & ~Q(digest=""),
                name="runs_configuration_heard",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.ref} {self.version}"
