"""People, groups and organisations are managed on pages, by those who may, and nobody locks everybody out."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from allauth.mfa.totp.internal.auth import TOTP
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.utils import DatabaseError
from django.test import Client
from django.urls import reverse

from accounts.models import Membership, PasswordLink, PeopleChange, Tenant, TenantGroup, User
from accounts.organisations import make_organiser
from accounts.rights import Right, grant_right, may
from accounts.second_factors import has_factor
from approvals.models import Attempt
from console.people import consequences
from console.people.endings import _digest
from runs import actions
from runs.clock import database_now
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.people import PASSWORD, House

REASON = "left the company yesterday"
NEW_PASSWORD = "a long walk by the sea"
HOSTILE = ["", "\x00", "<script>alert(1)</script>", "\u202eevil", "x" * 5000, "'; drop table x; --", "½"]


@pytest.fixture
def manager(house: House) -> User:
    """Someone who manages the people of the house, and nothing else."""
    person = User.objects.create_user(username="manager", password=PASSWORD, display_name="Manager")
    Membership.objects.create(user=person, tenant=house.tenant)
    grant_right(to=person, right=Right.MANAGE_PEOPLE, obj=house.tenant, actor=None, now=database_now())
    return person


def post(client: Client, url: str, **sent: str) -> int:
    return client.post(url, {"submission": str(uuid4()), **sent}).status_code


def person_url(person: User) -> str:
    return reverse("person", args=[person.pk])


def end_url(person: User, what: str = "membership") -> str:
    return reverse("person-end", args=[person.pk, what])


def end(client: Client, person: User, what: str = "membership", reason: str = REASON, **sent: str) -> int:
    """Look at what hangs on it, and end it."""
    form = read(client.get(end_url(person, what))).all("form", data_testid="end-form")
    return post(
        client, end_url(person, what), **{**(form[0].sends() if form else {}), "reason": reason, **sent}
    )


PAGES = ("people", "person-new", "groups")


def test_only_who_manages_people_sees_them_and_the_attempt_is_kept(
    house: House, manager: User, sign_in: SignIn
) -> None:
    group = TenantGroup.objects.create(tenant=house.tenant, title="Finance", group=_group())
    urls = [
        *map(reverse, PAGES), person_url(house.viewer), reverse("group", args=[group.pk]), end_url(house.viewer),
    ]  # fmt: skip
    for url in urls:
        assert sign_in(manager).get(url).status_code == 200, url
        for person in (house.operator, house.viewer):
            assert sign_in(person).get(url).status_code == 403, url
            assert post(sign_in(person), url, do="end") == (405 if url == urls[0] else 403), url
        assert Client().get(url)["Location"].startswith("/login/")
    kept = Attempt.objects.filter(refusal="not_allowed", tenant=house.tenant, person=house.operator)
    assert sorted(kept.values_list("subject", flat=True)) == sorted(urls[1:])
    for url in urls[3:]:
        assert sign_in(house.stranger).get(url).status_code == 404
        assert post(sign_in(house.stranger), url, do="end") == 404
    assert sign_in(manager).get(person_url(house.stranger)).status_code == 404
    assert Membership.objects.get(user=house.viewer).active


def _group() -> Group:
    return Group.objects.create(name=str(uuid4()))


def test_a_person_is_made_and_sets_a_password_by_a_link_that_works_once(
    manager: User, sign_in: SignIn
) -> None:
    client = sign_in(manager)
    sent = {"username": "nora", "display_name": "Nora Ek", "submission": str(uuid4())}
    answers = [client.post(reverse("person-new"), sent) for _ in range(2)]
    assert {answer.status_code for answer in answers} == {302}
    page = client.get(answers[0]["Location"]).content.decode()
    token = page.partition("/password/")[2].partition("/")[0]
    assert token and token not in client.get(reverse("people")).content.decode()
    assert not PasswordLink.objects.filter(token_hash=token).exists()
    url, stranger = reverse("password-link", args=[token]), Client()
    assert stranger.get(url).status_code == 200 and stranger.head(url).status_code == 200
    assert post(stranger, url, password="short", again="short") == 422
    assert post(stranger, url, password=NEW_PASSWORD, again="other") == 422
    assert post(stranger, url, password=NEW_PASSWORD, again=NEW_PASSWORD) == 302
    assert stranger.get(url).status_code == post(stranger, url, password=NEW_PASSWORD) == 404
    assert stranger.post("/login/", {"username": "nora", "password": NEW_PASSWORD}).status_code == 302
    made = User.objects.get(username="nora")
    assert list(made.tenants()) == list(manager.tenants())
    actions = PeopleChange.objects.filter(person=made).order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["person_made", "link_made", "link_used"]


def test_a_link_ends_with_its_time_with_a_newer_one_and_with_the_account(
    house: House, manager: User, sign_in: SignIn
) -> None:
    client, url = sign_in(manager), person_url(house.viewer)

    def link() -> str:
        assert post(client, url, do="link") == 302
        page = client.get(url).content.decode()
        return reverse("password-link", args=[page.partition("/password/")[2].partition("/")[0]])

    first, second = link(), link()
    assert Client().get(first).status_code == 404 and Client().get(second).status_code == 200
    PasswordLink.objects.update(expires_at=database_now())
    assert Client().get(second).status_code == 404
    third = link()
    assert end(client, house.viewer, "account") == 302
    assert Client().get(third).status_code == 404


def test_ending_a_membership_takes_groups_and_rights_from_the_commit_on(
    house: House, manager: User, sign_in: SignIn
) -> None:
    client = sign_in(manager)
    assert may(house.approver, Right.APPROVE_PLANS, house.agent)
    assert end(client, house.approver) == 302
    assert not may(house.approver, Right.APPROVE_PLANS, house.agent)
    assert post(client, person_url(house.approver), do="add") == 302
    assert list(house.approver.tenants()) == [house.tenant]
    assert not may(house.approver, Right.APPROVE_PLANS, house.agent)


def test_the_consequences_are_shown_before(house: House, manager: User, sign_in: SignIn) -> None:
    run = house.approved()
    actions.open_obligation(
        person=house.operator, run_id=run.pk, text="tell the auditor", to="", owner=house.operator,
        submission=uuid4(),
    )  # fmt: skip
    client = sign_in(manager)
    page = read(client.get(end_url(house.approver))).part("consequences").text
    assert (
        "1 approval of this person counts" in page and run.pk in page and "rights of the person alone" in page
    )
    page = read(client.get(end_url(house.operator))).part("consequences").text
    assert "1 open run acts on this person’s behalf. Nothing more is sent for it" in page and run.pk in page
    assert "1 thing that a run owes is kept by this person. It stays open and in the inbox" in page
    page = read(client.get(end_url(house.operator, "account"))).part("consequences").text
    assert "Acme: 1 open run acts" in page and "Memberships, groups and rights stay" in page


def test_nothing_ends_without_a_reason_or_on_another_ground_than_was_shown(
    house: House, manager: User, sign_in: SignIn
) -> None:
    client, url = sign_in(manager), end_url(house.approver)
    form = read(client.get(url)).part("end-form").sends()
    short = client.post(url, {**form, "reason": "gone"})
    assert short.status_code == 422 and read(short).one("textarea").text == "gone"
    assert end(client, house.approver, reason="x" * 5000) == 422
    house.approved()

    answer = client.post(url, {**form, "reason": REASON})

    assert answer.status_code == 409 and "has changed since" in read(answer).part("changed").text
    assert read(answer).one("textarea").text == REASON
    assert "1 approval of this person" in read(answer).part("consequences").text
    assert Membership.objects.get(user=house.approver).active
    kept = Attempt.objects.filter(refusal="stale").get()
    assert (kept.action, kept.reason, kept.person) == ("end membership", REASON, manager)
    again = read(answer).part("end-form").sends()
    assert client.post(url, {**again, "reason": REASON}).status_code == 302
    assert client.post(url, {**again, "reason": REASON}).status_code == 302
    assert PeopleChange.objects.get(person=house.approver).detail == {"reason": REASON}
    told = read(client.get("/audit/?result=refused")).text
    assert "tried: End a membership" in told and "what the page showed had changed" in told
    assert "It is so already" in client.get(url).content.decode()
    assert client.get(end_url(house.approver, "everything")).status_code == 404


def test_a_second_factor_and_known_identities_are_taken_away_for_a_reason(
    house: House, manager: User, sign_in: SignIn
) -> None:
    client, theirs = sign_in(manager), sign_in(house.viewer)
    TOTP.activate(house.viewer, "JBSWY3DPEHPK3PXP")
    SocialAccount.objects.create(provider="oidc", uid="subject-1", user=house.viewer)
    page = client.get(person_url(house.viewer)).content.decode()
    assert end_url(house.viewer, "second-factor") in page and end_url(house.viewer, "identity") in page
    assert "1 session ends at once" in client.get(end_url(house.viewer, "second-factor")).content.decode()
    assert end(client, house.viewer, "second-factor", reason="") == 422 and has_factor(house.viewer)
    assert end(client, house.viewer, "second-factor") == 302 and not has_factor(house.viewer)
    assert theirs.get("/inbox/")["Location"].startswith("/login/")
    assert end(client, house.viewer, "identity") == 302 and not SocialAccount.objects.exists()
    page = client.get(person_url(house.viewer)).content.decode()
    assert end_url(house.viewer, "identity") not in page
    told = sign_in(manager).get("/audit/?action=people").content.decode()
    assert "ended a link to an identity of another service" in told and REASON in told


def test_an_address_is_changed_by_a_manager_and_the_log_tells_from_what_to_what(
    house: House, manager: User, sign_in: SignIn
) -> None:
    client, url = sign_in(manager), person_url(house.viewer)
    for wrong in ("not an address", "a@b", "\x00@example.com", f"{'x' * 300}@example.com"):
        answer = client.post(url, {"do": "email", "email": wrong, "submission": str(uuid4())})
        assert answer.status_code == 422 and "field-email" in answer.content.decode(), wrong
    assert post(client, url, do="email", email="vi@example.com") == 302
    assert post(client, url, do="email", email="vi@example.com") == 302
    assert User.objects.get(pk=house.viewer.pk).email == "vi@example.com"
    changed = PeopleChange.objects.get(person=house.viewer, action="email_changed")
    assert (changed.actor, changed.detail) == (manager, {"was": "", "became": "vi@example.com"})


def test_deactivating_ends_the_sessions(house: House, manager: User, sign_in: SignIn) -> None:
    theirs = sign_in(house.viewer)
    assert theirs.get("/inbox/").status_code == 200
    assert end(sign_in(manager), house.viewer, "account") == 302
    assert theirs.get("/inbox/")["Location"].startswith("/login/")
    assert post(sign_in(manager), person_url(house.viewer), do="activate") == 302
    assert sign_in(house.viewer).get("/inbox/").status_code == 200


@pytest.mark.parametrize("what", ["membership", "account", "right"])
def test_the_last_who_manages_people_stays(house: House, manager: User, sign_in: SignIn, what: str) -> None:
    def give_up() -> Any:
        client = sign_in(manager)
        if what == "right":
            held = {
                "do": "take",
                "right": "manage_people",
                "place": "organisation",
                "submission": str(uuid4()),
            }
            return client.post(person_url(manager), held)
        form = read(client.get(end_url(manager, what))).part("end-form").sends()
        return client.post(end_url(manager, what), {**form, "reason": REASON})

    answer = give_up()
    assert answer.status_code == 422 and "Nobody would be left" in answer.content.decode()
    assert may(manager, Right.MANAGE_PEOPLE, house.tenant)
    assert Attempt.objects.filter(refusal="last_manager", person=manager).exists()
    other = User.objects.create_user(username="other")
    Membership.objects.create(user=other, tenant=house.tenant)
    grant_right(to=other, right=Right.MANAGE_PEOPLE, obj=house.tenant, actor=None, now=database_now())
    assert give_up().status_code == 302
    assert not may(manager, Right.MANAGE_PEOPLE, house.tenant)


def test_an_account_is_changed_only_by_who_manages_people_wherever_it_belongs(
    house: House, manager: User, sign_in: SignIn
) -> None:
    Membership.objects.create(user=house.stranger, tenant=house.tenant)
    client, url = sign_in(manager), person_url(house.stranger)
    assert client.get(url).status_code == 200
    assert post(client, url, do="link") == 422 and not PasswordLink.objects.exists()
    assert post(client, url, do="email", email="x@example.com") == 422
    TOTP.activate(house.stranger, "JBSWY3DPEHPK3PXP")
    for what in ("account", "second-factor"):
        assert "you cannot change the account" in client.get(end_url(house.stranger, what)).content.decode()
        lines = consequences.of_account if what == "account" else consequences.of_factor
        assert end(client, house.stranger, what, seen=_digest(lines(house.stranger))) == 422, what
    assert User.objects.get(pk=house.stranger.pk).is_active and has_factor(house.stranger)
    assert end(client, house.stranger) == 302
    assert [tenant.slug for tenant in house.stranger.tenants()] == ["other"]


def test_a_group_gives_its_rights_while_one_is_in_it(house: House, manager: User, sign_in: SignIn) -> None:
    client = sign_in(manager)
    assert post(client, reverse("groups"), title="Finance") == 302
    url = reverse("group", args=[TenantGroup.objects.get(title="Finance").pk])
    agent, viewer = f"agent:{house.agent.pk}", str(house.viewer.pk)
    assert post(client, url, do="give", right="approve_plans", place=agent) == 302
    assert post(client, url, do="join", person=viewer) == 302
    assert may(house.viewer, Right.APPROVE_PLANS, house.agent)
    assert post(client, url, do="delete") == 422
    assert post(client, url, do="leave", person=viewer) == 302
    assert not may(house.viewer, Right.APPROVE_PLANS, house.agent)
    assert post(client, url, do="take", right="approve_plans", place=agent) == 302
    assert post(client, url, do="rename", title="Treasury") == 302
    assert post(client, reverse("groups"), title="treasury") == 422
    assert post(client, url, do="delete") == 302
    assert not TenantGroup.objects.exists() and client.get(url).status_code == 404


def test_nothing_of_another_organisation_can_be_put_in(house: House, manager: User, sign_in: SignIn) -> None:
    client = sign_in(manager)
    post(client, reverse("groups"), title="Finance")
    url = reverse("group", args=[TenantGroup.objects.get().pk])
    foreign = house.stranger.tenants().get()
    assert post(client, url, do="join", person=str(house.stranger.pk)) == 422
    other_agent = foreign.runs_agents.get().pk if hasattr(foreign, "runs_agents") else 0
    for place in (f"agent:{other_agent}", "agent:999999", "run:run_X", "organisation:other", ""):
        expected = 302 if place.startswith("organisation") else 422
        assert post(client, url, do="give", right="view_runs", place=place) == expected, place
    assert not may(house.stranger, Right.VIEW_RUNS, house.tenant)
    assert client.get(f"{reverse('people')}?organisation=other").status_code == 404


def test_hostile_input_is_refused_or_shown_as_text(house: House, manager: User, sign_in: SignIn) -> None:
    client = sign_in(manager)
    post(client, reverse("groups"), title="Plain")
    group = reverse("group", args=[TenantGroup.objects.get().pk])
    forms = {
        reverse("person-new"): ("username", "display_name", "email"),
        reverse("groups"): ("title",),
        group: ("do", "title", "person", "right", "place", "run"),
        person_url(house.viewer): ("do", "right", "place", "run", "email"),
        end_url(house.viewer): ("reason", "seen"),
        reverse("settings"): ("display_name", "zone"),
        reverse("settings-password"): ("present", "password", "again"),
    }
    for url, fields in forms.items():
        for text in HOSTILE:
            for do in ("give", "rename", "join"):
                answer = client.post(
                    url, {"do": do, "submission": str(uuid4()), **dict.fromkeys(fields, text)}
                )
                assert answer.status_code in (302, 409, 422), (url, text)
                assert "<script>alert" not in answer.content.decode()
        assert client.post(url, {"submission": "no id"}).status_code == 422


def test_what_was_done_with_people_is_kept_for_ever(house: House, manager: User, sign_in: SignIn) -> None:
    end(sign_in(manager), house.viewer)
    kept = PeopleChange.objects.filter(person=house.viewer)
    assert [(entry.action, entry.actor) for entry in kept] == [("member_ended", manager)]
    for spoil in (partial(kept.update, action="x"), kept.delete):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            spoil()


def test_organisations_are_made_by_who_may_and_changed_by_who_manages_them(
    house: House, manager: User, sign_in: SignIn
) -> None:
    url, own = reverse("organisations"), reverse("organisation", args=["acme"])
    assert sign_in(house.viewer).get(url).status_code == 403
    assert post(sign_in(manager), url, do="make", slug="neu", name="Neu") == 403
    make_organiser(person=manager, actor=None, now=database_now())
    client = sign_in(manager)
    assert post(client, url, do="make", slug="neu", name="Neu") == 302
    assert may(manager, Right.MANAGE_PEOPLE, Tenant.objects.get(slug="neu"))
    for slug in ("neu", "", "Ümlaut", "-x", "a" * 64):
        assert post(client, url, do="make", slug=slug, name="Neu") == 422, slug
    assert post(client, url, do="end", username="manager") == 422
    assert sign_in(house.viewer).get(own).status_code == 404
    assert post(client, own, name="Acme AG", second_factor="1") == 302
    assert Tenant.objects.get(slug="acme").second_factor


def test_where_a_second_factor_is_demanded_nothing_else_is_seen_before_it(
    house: House, manager: User, sign_in: SignIn
) -> None:
    Tenant.objects.filter(pk=house.tenant.pk).update(second_factor=True)
    client, factor = sign_in(house.viewer), reverse("settings-factor")
    for url in ("/inbox/", "/runs/run_X/", "/settings/", "/agents/"):
        assert client.get(url)["Location"] == factor, url
    page = client.get(factor).content.decode()
    assert "Acme demands a second factor" in page
    assert client.get(reverse("settings-factor-picture"))["Content-Type"] == "image/svg+xml"
    assert client.post(factor, {"code": "000000"}).status_code == 422
    answer = client.post(factor, {"code": _code(client.session["mfa.totp.secret"])})
    assert answer["Location"] == reverse("settings-factor-codes")
    codes = client.get(answer["Location"]).content.decode()
    assert codes.count("<li><code>") == 10
    assert "<li><code>" not in client.get(answer["Location"]).content.decode()
    assert client.get("/inbox/").status_code == 200
    assert sign_in(house.stranger).get("/inbox/").status_code == 200


def _code(secret: str) -> str:
    from allauth.mfa.totp.internal import auth as totp

    return str(totp.format_hotp_value(totp.hotp_value(secret, next(totp.yield_hotp_counters_from_time()))))


def test_ones_own_password_and_sessions(house: House, sign_in: SignIn) -> None:
    mine, other = sign_in(house.viewer), sign_in(house.viewer)
    url = reverse("settings-password")
    assert post(mine, url, present="wrong", password=NEW_PASSWORD, again=NEW_PASSWORD) == 422
    assert post(mine, url, present=PASSWORD, password=NEW_PASSWORD, again=NEW_PASSWORD) == 302
    assert mine.get("/inbox/").status_code == 200
    assert other.get("/inbox/")["Location"].startswith("/login/")
    third = sign_in(User.objects.get(pk=house.viewer.pk))
    key = third.session.session_key
    assert post(mine, reverse("settings-session"), session=str(key)[:12]) == 302
    assert third.get("/inbox/")["Location"].startswith("/login/")
    assert mine.get("/settings/").status_code == 200


def grown_old(client: Client) -> None:
    """Their sign-in was long ago."""
    session = client.session
    session["signed_in_at"] = (database_now() - timedelta(minutes=16)).isoformat()
    session.save()


def test_what_opens_somebodys_account_takes_a_recent_sign_in(
    house: House, manager: User, sign_in: SignIn
) -> None:
    """Whoever finds a manager's open screen gets no lasting way into the accounts of others."""
    client, person = sign_in(manager), house.viewer
    TOTP.activate(person, "JBSWY3DPEHPK3PXP")
    person.set_password(PASSWORD)
    person.save()
    grown_old(client)
    back = f"{person_url(person)}?organisation=acme"
    wanted = {
        back: {"do": "email", "email": "new@example.com"},
        back + "&": {"do": "link"},
        f"{end_url(person, 'second-factor')}?organisation=acme": {"reason": REASON},
    }
    for url, sent in wanted.items():
        page = read(client.get(url.rstrip("&")))
        seen = [x.attrs["value"] for x in page.all("input", name="seen")]
        form = {"submission": str(uuid4()), **sent, **({"seen": seen[0]} if seen else {})}
        answer = client.post(url.rstrip("&"), form)
        assert answer.status_code == 302 and answer["Location"].startswith(reverse("sign-in-again")), sent
        again = read(client.get(answer["Location"]))
        assert "You are about to change how somebody signs in." in again.one("main").text
    person.refresh_from_db()
    assert (person.email, has_factor(person), PasswordLink.objects.count()) == ("", True, 0)
    assert set(Attempt.objects.values_list("refusal", flat=True)) == {"sign_in_too_old"}

    client.post(back, {"submission": str(uuid4()), "do": "email", "email": "new@example.com"})
    answer = client.post(reverse("sign-in-again"), {"password": PASSWORD, "next": back})
    assert answer["Location"] == back
    kept = read(client.get(back)).one("input", name="email")
    assert kept.attrs["value"] == "new@example.com", "what was typed waits"
    for sent in ({"do": "email", "email": "new@example.com"}, {"do": "link"}):
        assert post(client, back, **sent) == 302
    assert end(client, person, "second-factor") == 302
    person.refresh_from_db()
    assert (person.email, has_factor(person), PasswordLink.objects.count()) == ("new@example.com", False, 1)


def test_the_first_link_of_an_account_that_nobody_used_takes_no_other_sign_in(
    house: House, manager: User, sign_in: SignIn
) -> None:
    client = sign_in(manager)
    grown_old(client)

    made = post(client, reverse("person-new"), username="new", display_name="New", email="new@example.com")

    assert made == 302 and PasswordLink.objects.count() == 1


def test_each_finds_in_the_navigation_what_they_may_manage(
    house: House, manager: User, sign_in: SignIn
) -> None:
    make_organiser(person=house.viewer, actor=None, now=database_now())
    shown = {}
    for person in (manager, house.viewer, house.operator):
        page = read(sign_in(person).get("/settings/"))
        shown[person.username] = {a.text for a in page.all("nav")[0].all("a")} & {"People", "Organisations"}
    assert shown == {"manager": {"People"}, "viewer": {"Organisations"}, "operator": set()}
    assert "Acme" in read(sign_in(house.viewer).get(reverse("organisations"))).one("main").text
