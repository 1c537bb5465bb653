"""What loses its ground when something of a person ends, as sentences for the page that asks first."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import Membership, Tenant, User
from accounts.sessions import sessions_of
from approvals.models import OPEN_STATES, Decision, Verdict
from console.people import places
from runs.clock import database_now
from runs.machine.state import State
from runs.models import CLOSED, Obligation, Run
from runs.pages import words

#: As many are named; the number says how many there are.
NAMED = 10


def of_membership(person: User, tenant: Tenant) -> list[str]:
    """Of the end of a membership: groups, rights, runs and approvals there."""
    groups = tenant.groups.filter(group__user=person).order_by("title").values_list("title", flat=True)
    lines = []
    if groups:
        text = _("The person is in these groups no more: %(groups)s.")
        lines.append(text % {"groups": words.joined(list(groups))})
    if held := len(places.held(person, tenant)):
        text = ngettext(
            "%(number)d right of the person alone is withdrawn.",
            "%(number)d rights of the person alone are withdrawn.", held,
        )  # fmt: skip
        lines.append(text % {"number": held})
    return [*lines, *_resting(person, tenant)]


def of_account(person: User) -> list[str]:
    """Of the end of all signing in: sessions, and what rests on the person in each organisation."""
    lines = list(_sessions(person))
    for membership in Membership.objects.filter(user=person, active=True).select_related("tenant"):
        name = membership.tenant.name
        resting = _resting(person, membership.tenant)
        lines += [_("%(organisation)s: %(what)s") % {"organisation": name, "what": line} for line in resting]
    return [
        *lines,
        _("Memberships, groups and rights stay, for the day on which the person may sign in again."),
    ]


def of_factor(person: User) -> list[str]:
    """Of the removal of a second factor."""
    asked = person.tenants().filter(second_factor=True).values_list("name", flat=True)
    lines = [*_sessions(person), _("The recovery codes work no more.")]
    if asked:
        text = _(
            "%(organisations)s: a second factor is demanded, so the person is led to set one up at the next sign-in."
        )
        return [*lines, text % {"organisations": words.joined(list(asked))}]
    return [*lines, _("Until the person sets one up again, the password alone is enough.")]


def of_identities(person: User) -> list[str]:
    """Of the end of the links to other services."""
    lines = [
        *_sessions(person),
        _("The next sign-in with a service that has verified the person’s e-mail address makes a new link."),
    ]
    if not person.email:
        lines.append(
            _("This person has no e-mail address here, so no service can be linked again before they have.")
        )
    if not person.has_usable_password():
        lines.append(_("This person has no password: until then they cannot sign in at all."))
    return lines


def _sessions(person: User) -> Iterator[str]:
    number = sessions_of(person, database_now()).count()
    text = ngettext("%(number)d session ends at once.", "%(number)d sessions end at once.", number)
    yield text % {"number": number} if number else _("The person is signed in nowhere.")


def _resting(person: User, tenant: Tenant) -> Iterator[str]:
    runs = Run.objects.filter(tenant=tenant, principal=person).exclude(state__in=CLOSED)
    if number := runs.count():
        text = ngettext(
            "%(number)d open run acts on this person’s behalf. Nothing more is sent for it before somebody lends to it "
            "anew: %(runs)s.",
            "%(number)d open runs act on this person’s behalf. Nothing more is sent for them before somebody lends to "
            "them anew: %(runs)s.", number,
        )  # fmt: skip
        yield text % {
            "number": number,
            "runs": _some(list(runs.order_by("pk")[:NAMED].values_list("pk", flat=True)), number),
        }
    approvals = Decision.objects.filter(
        person=person, verdict=Verdict.APPROVE, request__tenant=tenant, request__state__in=OPEN_STATES,
    )  # fmt: skip
    if number := approvals.count():
        text = ngettext(
            "%(number)d approval of this person counts for a plan that is not done. It will not count any more, and "
            "people are asked again: %(runs)s.",
            "%(number)d approvals of this person count for plans that are not done. They will not count any more, and "
            "people are asked again: %(runs)s.", number,
        )  # fmt: skip
        subjects = approvals.order_by("request__subject").values_list("request__subject", flat=True)[:NAMED]
        yield text % {
            "number": number,
            "runs": _some([subject.partition(":")[0] for subject in subjects], number),
        }
    yield from _kept(person, tenant)
    if not runs.exists() and not approvals.exists():
        yield _("No open run acts on this person’s behalf, and no approval of theirs is in use.")


def _kept(person: User, tenant: Tenant) -> Iterator[str]:
    """What runs owe and this person keeps: it stays so until somebody hands it on."""
    owed = Obligation.objects.filter(tenant=tenant, owner=str(person.pk), discharged_seq__isnull=True)
    owed = owed.exclude(run__state=State.RESTARTED.value)
    if number := owed.count():
        text = ngettext(
            "%(number)d thing that a run owes is kept by this person. It stays open and in the inbox, and can be "
            "handed to somebody else: %(runs)s.",
            "%(number)d things that runs owe are kept by this person. They stay open and in the inbox, and can be "
            "handed to somebody else: %(runs)s.", number,
        )  # fmt: skip
        ids = owed.order_by("run_id").values_list("run_id", flat=True).distinct()[:NAMED]
        yield text % {"number": number, "runs": _some(list(ids), number)}


def _some(ids: list[str], number: int) -> str:
    return words.joined(ids) + (_(" and others") if number > len(ids) else "")
