"""Saved views: a question under a name, of one person or for all of an organisation, counted anew for each reader."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import PeopleAction, PeopleChange, SavedView, User
from accounts.rights import Right, grant_right
from accounts.saved_views import MOST, save_view
from approvals.models import Attempt
from runs.clock import database_now
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.examples import HOSTILE
from tests.pages.reading import Node, form_of, read
from tests.pages.test_run import stuck
from tests.people import House, advance

WAITING = "?view=waiting_approval&q=order+7"


def keep(client: Client, query: str, **typed: str) -> Any:
    """What the form answers that the inbox links to."""
    page = read(client.get(f"/inbox/{query}"))
    (link,) = [a for a in page.one("main").all("a") if a.text == "Save view"]
    form = form_of(read(client.get(link.attrs["href"])))
    return client.post(link.attrs["href"], {**form.sends(), **typed})


def shown(page: Node) -> dict[str, str]:
    """The saved views of the navigation: name, count."""
    return {
        link.one(data_content="").text: link.all("span")[-1].text
        for link in page.one("nav", aria_label="Main").all("a", data_testid="saved-view")
    }


def manager(house: House) -> User:
    grant_right(to=house.second, right=Right.MANAGE_PEOPLE, obj=house.tenant, actor=None, now=database_now())
    return house.second


def kept(house: House, person: User, name: str, query: str = WAITING, *, shared: bool = False) -> SavedView:
    tenant = house.tenant if shared else None
    return save_view(person=person, tenant=tenant, name=name, query=query, now=database_now())


def test_a_view_is_kept_with_its_filters_and_listed_with_its_count_for_its_person_alone(
    house: House, sign_in: SignIn
) -> None:
    client = sign_in(house.viewer)
    house.waiting("7")
    house.waiting("8")

    answer = keep(client, WAITING + "&page=3&evil=%3Cb%3E", name=f"  {HOSTILE[:40]} ")

    page = read(client.get(answer["Location"]))
    assert "This view was saved as" in page.part("result").text
    (name,) = shown(page)
    assert "[U+202E]" in name and "<img" in name and "<img src" not in answer.content.decode()
    assert shown(page)[name] == str(len(page.all("tr", data_testid="row"))) == "1"
    assert SavedView.objects.get().query == WAITING
    current = page.one("nav", aria_label="Main").all("a", aria_current="page")
    assert [link.attrs["href"] for link in current] == [f"/inbox/{WAITING}"]
    assert shown(read(sign_in(house.approver).get("/inbox/"))) == {}
    assert shown(read(client.get("/settings/"))) == {name: "1"}


def test_the_poll_of_the_inbox_tells_the_count_anew(house: House, sign_in: SignIn) -> None:
    client, view = sign_in(house.viewer), kept(house, house.viewer, "Sevens")
    poll = read(client.get("/inbox/?view=all")).one(id="notices").attrs["hx-get"]
    first = client.get(poll)
    assert read(first).one(id=f"count-view-{view.pk}").text == "0"

    house.waiting("7")

    second = client.get(poll, headers={"If-None-Match": first["ETag"]})
    assert read(second).one(id=f"count-view-{view.pk}").text == "1"


def test_each_count_is_that_of_the_rows_which_the_view_lists(
    house: House, world: World, sign_in: SignIn
) -> None:
    stuck(house, world)
    house.waiting("7")
    world.answers, world.outage = [], ""
    advance(house.start("8"))
    person, client = house.approver, sign_in(house.approver)
    queries = (
        "?view=all", "?view=all&mine=1", "?view=closed", "?view=any&q=order+8", "?view=any&state=succeeded",
        "?view=unknown", "?view=waiting_approval&risk=low", "?view=all&claimed=nobody", "?view=any&agent=payer",
    )  # fmt: skip
    for query in queries:
        kept(house, person, query, query)

    counts = shown(read(client.get("/settings/")))

    rows = {q: len(read(client.get(f"/inbox/{q}")).all("tr", data_testid="row")) for q in queries}
    assert counts == {query: str(number) for query, number in rows.items()}
    assert set(counts.values()) == {"0", "1", "2", "3"}


def test_one_for_all_is_saved_by_who_manages_people_and_shows_each_what_they_may_see(
    house: House, sign_in: SignIn
) -> None:
    house.waiting("7")
    refused = keep(sign_in(house.operator), WAITING, name="Sevens", **{"for": "acme"})
    assert refused.status_code == 403 and not SavedView.objects.exists()
    assert Attempt.objects.get().action == "save view"

    answer = keep(sign_in(manager(house)), WAITING, name="Sevens", **{"for": "acme"})

    assert answer.status_code == 302
    assert shown(read(sign_in(house.operator).get("/inbox/"))) == {"Sevens": "1"}
    outsider = User.objects.create_user(username="new", display_name="New")
    house.tenant.memberships.create(user=outsider)
    assert shown(read(sign_in(outsider).get("/inbox/"))) == {"Sevens": "0"}
    assert shown(read(sign_in(house.stranger).get("/inbox/"))) == {}
    change = PeopleChange.objects.get(action=PeopleAction.VIEW_SHARED)
    assert (change.tenant, change.actor, change.detail["name"]) == (house.tenant, house.second, "Sevens")
    assert "saved a view for the organisation" in read(sign_in(house.second).get("/audit/")).text


def test_who_belongs_to_another_organisation_saves_none_for_this_one(house: House, sign_in: SignIn) -> None:
    answer = keep(sign_in(house.stranger), "?view=all", name="Theirs", **{"for": "acme"})
    assert answer.status_code == 422 and not SavedView.objects.exists()


def test_what_a_view_asks_for_and_is_not_there_any_more_is_said(house: House, sign_in: SignIn) -> None:
    client = sign_in(house.viewer)
    house.waiting("7")
    query = "?view=sleeping&agent=gone%3Cb%3E&risk=awful&state=lost&parent=run_NEVER"
    kept(house, house.viewer, "Old", query)

    page = read(client.get(f"/inbox/{query}"))

    said = page.part("gone").text
    for words in (
        "“sleeping” is no value of the filter “List” any more.",
        "“awful” is no value of the filter “Risk” any more.",
        "“lost” is no value of the filter “State” any more.",
        "There is no agent “gone<b>” any more",
        "There is no run “run_NEVER”",
    ):
        assert words in said
    assert "There is no agent “gone<b>” any more" in read(client.get("/settings/")).part("saved-views").text
    whole = read(client.get("/inbox/?view=all&agent=payer&risk=low&state=unknown"))
    assert whole.all(data_testid="gone") == []


def test_views_are_put_in_order_and_deleted_in_the_settings(house: House, sign_in: SignIn) -> None:
    client, person = sign_in(house.viewer), house.viewer
    one, two, three = (kept(house, person, name) for name in ("one", "two", "three"))
    form = read(client.get("/settings/")).part("saved-views").all("form")[0]

    def change(do: str, view: SavedView) -> list[str]:
        sent = {**form.sends(), "do": do, "view": str(view.pk)}
        assert client.post(form.attrs["action"], sent)["Location"] == "/settings/?saved=views#saved-views"
        return list(shown(read(client.get("/settings/"))))

    assert change("up", three) == ["one", "three", "two"]
    assert change("down", one) == ["three", "one", "two"]
    assert change("up", three) == change("down", two) == ["three", "one", "two"]
    assert change("delete", one) == ["three", "two"]
    foreign = kept(house, house.approver, "mine")
    answer = client.post(form.attrs["action"], {"do": "delete", "view": str(foreign.pk)})
    assert answer.status_code == 404
    shared = kept(house, manager(house), "ours", shared=True)
    answer = client.post(form.attrs["action"], {"do": "delete", "view": str(shared.pk)})
    assert answer.status_code == 403 and Attempt.objects.get().action == "change view"
    assert "ours" not in read(client.get("/settings/")).part("saved-views").text
    assert SavedView.objects.filter(pk__in=[foreign.pk, shared.pk]).count() == 2


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "SEVENS"])
def test_a_name_that_cannot_be_kept_is_refused_and_nothing_is_lost(
    house: House, sign_in: SignIn, name: str
) -> None:
    kept(house, house.viewer, "Sevens")

    answer = keep(sign_in(house.viewer), "?view=any", name=name)

    assert answer.status_code == 422
    page = read(answer)
    assert page.one("input", name="name").attrs["value"] == name
    assert page.one("input", name="query").attrs["value"] == "?view=any"
    assert page.one(id="error-name").text and SavedView.objects.count() == 1


def test_sent_twice_it_is_kept_once_and_at_the_limit_no_more(house: House, sign_in: SignIn) -> None:
    client = sign_in(house.viewer)
    first, second = (keep(client, WAITING, name="Sevens") for _ in range(2))
    assert first["Location"] == second["Location"] and SavedView.objects.count() == 1
    for number in range(MOST - 1):
        kept(house, house.viewer, f"view {number}")
    answer = keep(client, WAITING, name="one more")
    assert answer.status_code == 422 and "Delete one first." in read(answer).part("errors").text


def test_the_inbox_asks_as_much_for_many_views_and_nothing_for_none(house: House, sign_in: SignIn) -> None:
    client = sign_in(house.viewer)

    def asked() -> int:
        client.get("/inbox/")
        with CaptureQueriesContext(connection) as found:
            client.get("/inbox/")
        listing = [x for x in found if x["sql"].startswith('SELECT "accounts_savedview"')]
        assert len(listing) == (1 if SavedView.objects.exists() else 0)
        return len(found)

    none = asked()
    kept(house, house.viewer, "Sevens")
    one = asked()
    for number in range(5):
        kept(house, house.viewer, f"view {number}", "?view=all&mine=1")
    assert asked() == one <= none + 4


def test_the_database_keeps_each_view_with_one_holder_and_a_name(house: House) -> None:
    good = {
        "person": house.viewer, "by": house.viewer, "name": "x", "query": "?view=all", "place": 0,
        "at": database_now(),
    }  # fmt: skip
    SavedView.objects.create(**good)
    for wrong in (
        {"tenant": house.tenant},
        {"person": None},
        {"name": " "},
        {"query": "//evil"},
        {"name": "X"},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            SavedView.objects.create(**{**good, "name": "y", **wrong})
