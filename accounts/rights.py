"""Whether a person may do a thing, now; and how a right is granted and withdrawn.

Every answer is read anew in one query and never kept, on no user object and in no process: a right removed a
second ago counts as removed, in workers too. A superuser flag gives nothing. Anything that has a `tenant_id`
can carry rights. One that is held on a tenant counts for everything of the tenant, one on an agent for its
runs: `handoff_places` in the database says where a right on an object may be held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, cast
from uuid import UUID

from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.contrib.postgres.fields import ArrayField
from django.db import connection, models, transaction
from django.db.models import (
    BooleanField,
    CharField,
    ExpressionWrapper,
    F,
    Func,
    IntegerField,
    Model,
    Q,
    QuerySet,
    UUIDField,
    Value,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast
from django.db.models.lookups import Exact
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from guardian.models import GroupObjectPermission, UserObjectPermission
from guardian.shortcuts import assign_perm, remove_perm

from accounts.fence import fence_exclusive
from accounts.guards import note_held
from accounts.models import RightChange, Tenant, User
from accounts.permissions import Right as Right
from accounts.permissions import giving


class Tenanted(Protocol):
    """A saved model instance that belongs to a tenant."""

    @property
    def pk(self) -> object: ...
    @property
    def tenant_id(self) -> UUID: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An object that rights are held on, by the ids under which the database knows it."""

    tenant_id: UUID
    object_type_id: int
    object_pk: str

    @classmethod
    def of(cls, obj: Tenanted) -> Place:
        kind = ContentType.objects.get_for_model(cast(Model, obj))
        return cls(tenant_id=obj.tenant_id, object_type_id=kind.pk, object_pk=str(obj.pk))


class DenialKind(models.TextChoices):
    """Why a person may not, the widest reason first."""

    NOT_ACTIVE = "not_active", gettext_lazy("cannot sign in any more")
    NOT_MEMBER = "not_member", gettext_lazy("does not belong to this organisation")
    RIGHT_MISSING = "right_missing", gettext_lazy("does not have the right")


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """That a person may not do a thing, and why."""

    kind: DenialKind
    person: User
    right: Right

    @property
    def sentence(self) -> str:
        """One translated sentence for a page."""
        facts = {"person": self.person.shown_name, "right": self.right.label}
        match self.kind:
            case DenialKind.NOT_ACTIVE:
                return _("%(person)s cannot sign in any more.") % facts
            case DenialKind.NOT_MEMBER:
                return _("%(person)s does not belong to this organisation.") % facts
            case _:
                return _("%(person)s does not have the right “%(right)s” here.") % facts


_HOLDS = """
u.is_active AS active,
EXISTS (SELECT FROM accounts_membership m
         WHERE m.user_id = u.id AND m.tenant_id = %(tenant)s AND m.active) AS member,
handoff_approvers_standing(%(tenant)s, ARRAY[u.id], %(right)s, %(type)s, %(object)s) = 1 AS held
"""
_WHY_NOT = f"SELECT {_HOLDS} FROM accounts_user u WHERE u.id = %(person)s"
# Asked at each revalidation: Django takes longer to write it than PostgreSQL to answer.
_WHY_NOT_EACH = f"""
SELECT u.*, {_HOLDS} FROM unnest(%(people)s::uuid[]) WITH ORDINALITY asked(id, place) JOIN accounts_user u USING (id)
ORDER BY asked.place
"""


def may(person: User, right: Right, obj: Tenanted) -> bool:
    """Whether this person may do this with this object, now."""
    return why_not(person, right, obj) is None


def why_not(person: User, right: Right, obj: Tenanted) -> Denial | None:
    """Why this person may not do this with this object, now; None: they may."""
    return why_not_at(person, right, Place.of(obj))


def why_not_at(person: User, right: Right, place: Place) -> Denial | None:
    """As `why_not`, where only the ids of the object are at hand."""
    with connection.cursor() as cursor:
        cursor.execute(_WHY_NOT, {"person": person.pk, **_parameters(right, place)})
        held = cursor.fetchone() or (False, False, False)
    return _denial(person, right, place, *held)


def why_not_each(people: Sequence[UUID], right: Right, place: Place) -> list[tuple[User, Denial | None]]:
    """As `why_not_at`, of the people with these ids, in their order: one query."""
    asked = {"people": list(people), **_parameters(right, place)}
    found = User.objects.raw(_WHY_NOT_EACH, asked)
    return [
        (p, _denial(p, right, place, *(vars(p)[said] for said in ("active", "member", "held"))))
        for p in found
    ]


def _denial(
    person: User, right: Right, place: Place, active: bool, member: bool, held: bool
) -> Denial | None:
    """What the database said of the person, as an answer."""
    if held:
        note_held(person=person.pk, object_pk=place.object_pk)
        return None
    kind = (
        DenialKind.NOT_ACTIVE if not active else DenialKind.RIGHT_MISSING if member else DenialKind.NOT_MEMBER
    )
    return Denial(kind=kind, person=person, right=right)


def _parameters(right: Right, place: Place) -> dict[str, str | int | UUID]:
    return {
        "tenant": place.tenant_id,
        "right": right.value,
        "type": place.object_type_id,
        "object": place.object_pk,
    }


def holders(right: Right, obj: Tenanted) -> list[User]:
    """Everyone who may do this with this object, now, by name."""
    return holders_at(right, Place.of(obj))


def holders_at(right: Right, place: Place) -> list[User]:
    """As `holders`, where only the ids of the object are at hand."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT handoff_right_holders(%(tenant)s, %(right)s, %(type)s, %(object)s)",
            _parameters(right, place),
        )
        ids = [row[0] for row in cursor.fetchall()]
    return list(User.objects.filter(pk__in=ids).order_by("display_name", "username"))


def objects_with[M: Model](person: User, right: Right, model: type[M]) -> QuerySet[M]:
    """The objects of a model (with a `tenant`) on which this person holds the right, there or on the tenant, for
    `filter(agent__in=…)`.

    It is a subquery: a page of any number of rows asks once.
    """
    by_text = cast("QuerySet[M]", model._base_manager.alias(pk_text=Cast("pk", CharField())))
    here = Q(pk_text__in=_held_on(person, right, model)[0]) | Q(pk_text__in=_held_on(person, right, model)[1])
    return by_text.filter(here | Q(tenant__in=tenants_with(person, right)), tenant__in=person.tenants())


def holding(
    person: User, codename: Combinable, object_type: Combinable, object_pk: Combinable
) -> ExpressionWrapper[Q]:
    """Of rows with a `tenant`: whether this person holds the right of that codename on the object that the columns
    name, there or on what it belongs to.
    """
    who = Value([person.pk], output_field=ArrayField(UUIDField()))
    standing = Func(
        F("tenant"), who, codename, object_type, object_pk,
        function="handoff_approvers_standing", output_field=IntegerField(),
    )  # fmt: skip
    return ExpressionWrapper(Q(Exact(standing, 1)), output_field=BooleanField())


def tenants_with(person: User, right: Right) -> QuerySet[Tenant]:
    """The tenants for the whole of which this person holds the right: a subquery."""
    by_text = person.tenants().alias(pk_text=Cast("pk", CharField()))
    direct, by_group = _held_on(person, right, Tenant)
    return by_text.filter(Q(pk_text__in=direct) | Q(pk_text__in=by_group))


def held_here(person: User, right: Right, model: type[Model]) -> Q:
    """The rows of a model with a text as its key that themselves carry the right for this person.

    Says nothing of membership, nor of what is held on what they belong to: the caller does.
    """
    direct, by_group = _held_on(person, right, model)
    return Q(pk__in=direct) | Q(pk__in=by_group)


def _held_on(
    person: User, right: Right, model: type[Model]
) -> tuple[QuerySet[UserObjectPermission, str], QuerySet[GroupObjectPermission, str]]:
    """The keys, as texts, of the objects that carry the right for this person: directly, and by a group."""
    codenames = [enough.value for enough in giving(right)]
    held = Q(permission__codename__in=codenames, content_type=ContentType.objects.get_for_model(model))
    direct = UserObjectPermission.objects.filter(held, user_id=person.pk).values_list("object_pk", flat=True)
    by_group = GroupObjectPermission.objects.filter(held, group__user=person.pk)
    return direct, by_group.values_list("object_pk", flat=True)


class MisplacedRightError(ValueError):
    """This right cannot be held on an object of this kind: `accounts.permissions` says on which it can."""

    def __init__(self, right: Right, obj: Tenanted) -> None:
        super().__init__(f"{right.value} cannot be held on a {type(obj).__name__.lower()}")


def grant_right(*, to: User | Group, right: Right, obj: Tenanted, actor: User | None, now: datetime) -> bool:
    """Give a person or a group a right on an object; False: they had it. `actor` None is a command, never a
    person. Raises MisplacedRightError.
    """
    with transaction.atomic():
        fence_exclusive(obj.tenant_id)
        if _held(to, right, obj).exists():
            return False
        try:
            assign_perm(right.value, to, cast(Model, obj))
        except Permission.DoesNotExist as error:
            raise MisplacedRightError(right, obj) from error
        _log(to=to, right=right, obj=obj, actor=actor, now=now, granted=True)
    return True


def withdraw_right(
    *, to: User | Group, right: Right, obj: Tenanted, actor: User | None, now: datetime
) -> bool:
    """Take a right from a person or a group; False: they had none. From the commit on nothing can rest on it.

    The fence is taken by the trigger on the removed row: for all tenants of those concerned, in the one
    order.
    """
    with transaction.atomic():
        if not _held(to, right, obj).exists():
            return False
        remove_perm(right.value, to, cast(Model, obj))
        _log(to=to, right=right, obj=obj, actor=actor, now=now, granted=False)
    return True


def _held(
    to: User | Group, right: Right, obj: Tenanted
) -> QuerySet[UserObjectPermission] | QuerySet[GroupObjectPermission]:
    place = Place.of(obj)
    on = Q(
        permission__codename=right.value,
        permission__content_type_id=place.object_type_id,
        content_type_id=place.object_type_id,
        object_pk=place.object_pk,
    )
    if isinstance(to, User):
        return UserObjectPermission.objects.filter(on, user=to)
    return GroupObjectPermission.objects.filter(on, group=to)


def _log(
    *, to: User | Group, right: Right, obj: Tenanted, actor: User | None, now: datetime, granted: bool
) -> None:
    place = Place.of(obj)
    RightChange.objects.create(
        tenant_id=place.tenant_id,
        actor=actor,
        person=to if isinstance(to, User) else None,
        group=to if isinstance(to, Group) else None,
        codename=right.value,
        object_type_id=place.object_type_id,
        object_pk=place.object_pk,
        granted=granted,
        at=now,
    )
