"""The reconcile page: asking, concluding from an answer, and everything that is refused."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from django.test import Client

from approvals.models import Attempt
from runs.ledger import load
from runs.machine.state import EffectStatus, State
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import form_of, read
from tests.pages.test_run import stuck
from tests.people import House, advance, assert_replays


def address(run: Run) -> str:
    return f"/runs/{run.pk}/effects/1/reconcile/"


def ask(client: Client, run: Run) -> str:
    """Press "Ask"; the text of the page that answers."""
    form = form_of(read(client.get(address(run))), testid="ask-form")
    answer = client.post(form.attrs["action"], form.sends(), follow=True)
    assert answer.status_code == 200
    assert_replays(run)
    return read(answer).one("main").text


def conclude(client: Client, run: Run, conclusion: str, **changed: str) -> tuple[int, str]:
    """Choose a conclusion and send the form: status and text."""
    form = form_of(read(client.get(address(run))), testid="conclusion-form").sends()
    answer = client.post(address(run), {**form, "conclusion": conclusion, **changed})
    assert_replays(run)
    return answer.status_code, read(answer).text


def test_it_happened_is_recorded_from_the_answer(house: House, world: World, sign_in: SignIn) -> None:
    run, client = stuck(house, world), sign_in(house.operator)
    world.outage = ""

    said = ask(client, run)
    status, _ = conclude(client, run, "happened", note="the bank has it")

    assert "1 match: ref-pay:1042" in said
    assert "This answer supports: It happened" in said
    assert status == 302
    effect = load(run.pk).effects[1]
    assert effect.status is EffectStatus.CONFIRMED
    assert effect.receipt is not None and effect.receipt.by_person
    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:1042") == 1


def test_nothing_is_chosen_and_what_fails_is_named(house: House, world: World, sign_in: SignIn) -> None:
    run, client = stuck(house, world), sign_in(house.operator)
    world.outage = ""
    ask(client, run)

    page = read(client.get(address(run)))

    assert not [radio for radio in page.all("input", type="radio") if "checked" in radio.attrs]
    (off,) = [x for x in page.part("outcomes").all("div") if x.attrs.get("data-outcome") == "not_happened"]
    assert "Not available: the other system reports a match." in off.text


def test_a_question_without_answer_leaves_it_unknown(house: House, world: World, sign_in: SignIn) -> None:
    run, client = stuck(house, world), sign_in(house.operator)

    said = ask(client, run)

    assert "We could not ask bank: the bank is closed." in said
    assert "E-1 is still unknown. Nothing was sent." in said
    assert load(run.pk).effects[1].status is EffectStatus.UNKNOWN
    assert world.calls == ["pay:1042"]
    assert "There was no answer. That it was asked is kept in the log." in said
    assert "stored as evidence" not in said.lower()


def test_earlier_questions_are_a_line_each(house: House, world: World, sign_in: SignIn) -> None:
    run, client = stuck(house, world), sign_in(house.operator)
    ask(client, run)
    world.outage = ""
    said = ask(client, run)

    page = read(client.get(address(run)))
    earlier = page.part("earlier")

    assert "The answer was stored as evidence." in said
    assert "1 match: ref-pay:1042" in page.part("answer").text
    assert earlier.tag == "details" and "open" not in earlier.attrs
    lines = [line.text for line in earlier.all("li")]
    assert earlier.one("summary").text == f"{len(lines)} earlier questions"
    assert all("We could not ask bank: the bank is closed." in line for line in lines)


def test_not_found_counts_only_once_it_is_settled(
    house: House, world: World, sign_in: SignIn, clock: Clock
) -> None:
    run, client = stuck(house, world), sign_in(house.operator)
    world.outage, world.visible = "", False
    ask(client, run)

    status, text = conclude(client, run, "not_happened")

    assert status == 422
    assert "“not found” can be believed" in text
    assert load(run.pk).effects[1].status is EffectStatus.UNKNOWN
    kept = Attempt.objects.get()
    assert (kept.person, kept.action, kept.refusal) == (house.operator, "conclude", "condition:too_early")
    clock.move(timedelta(minutes=1))
    ask(client, run)
    assert conclude(client, run, "not_happened")[0] == 302
    assert load(run.pk).effects[1].status is EffectStatus.NOT_EXECUTED


def test_a_match_can_not_be_denied(house: House, world: World, sign_in: SignIn, clock: Clock) -> None:
    run, client = stuck(house, world), sign_in(house.operator)
    world.outage = ""
    clock.move(timedelta(minutes=1))
    ask(client, run)

    status, text = conclude(client, run, "not_happened")

    assert status == 422
    assert "Error:" in text and "the other system reports a match." in text


def test_still_unknown_records_nothing(house: House, world: World, sign_in: SignIn) -> None:
    run, client = stuck(house, world), sign_in(house.operator)
    seq = load(run.pk).seq

    form = form_of(read(client.get(address(run))), testid="conclusion-form").sends()
    answer = client.post(address(run), {**form, "conclusion": "still_unknown"}, follow=True)

    assert "Nothing was recorded. E-1 is still unknown. Nothing was sent." in read(answer).text
    assert load(run.pk).seq == seq


def test_an_answer_that_came_meanwhile_is_a_conflict(house: House, world: World, sign_in: SignIn) -> None:
    run, client = stuck(house, world), sign_in(house.operator)
    world.outage = ""
    ask(client, run)
    form = form_of(read(client.get(address(run))), testid="conclusion-form").sends()
    ask(client, run)

    answer = client.post(address(run), {**form, "conclusion": "happened", "note": "long typed text"})

    page = read(answer)
    assert answer.status_code == 409
    assert "was not recorded and nothing was sent" in page.part("conflict").text
    assert page.one("textarea").text == "long typed text"
    assert not [radio for radio in page.all("input", type="radio") if "checked" in radio.attrs]
    assert Attempt.objects.get().refusal == "stale"


def test_the_same_form_twice_concludes_once(house: House, world: World, sign_in: SignIn) -> None:
    run, client = stuck(house, world), sign_in(house.operator)
    world.outage = ""
    ask(client, run)
    form = form_of(read(client.get(address(run))), testid="conclusion-form").sends()

    first = client.post(address(run), {**form, "conclusion": "happened"})
    second = client.post(address(run), {**form, "conclusion": "happened"})

    assert (first.status_code, second.status_code) == (302, 302)
    assert first["Location"] == second["Location"]
    assert "Your conclusion was recorded." in read(client.get(first["Location"])).part("result").text
    assert "conclusion-form" not in client.get(address(run)).content.decode()


def test_one_who_may_only_look_and_a_stranger(house: House, world: World, sign_in: SignIn) -> None:
    run = stuck(house, world)
    watching, foreign = sign_in(house.viewer), sign_in(house.stranger)
    form = {"conclusion": "happened", "submission": str(uuid4()), "intent_seq": "1", "evidence_seq": ""}

    page = watching.get(address(run))
    assert "Viewer does not have the right “Reconcile effects” here." in read(page).part("why-not").text
    refused = watching.post(address(run), form)
    assert refused.status_code == 403
    assert "Operator" in read(refused).text
    assert watching.post(f"/runs/{run.pk}/effects/1/ask/", form).status_code == 403
    assert Attempt.objects.filter(person=house.viewer, refusal="not_allowed").count() == 2
    for method in (foreign.get, foreign.post):
        assert method(address(run)).status_code == 404
    assert load(run.pk).effects[1].status is EffectStatus.UNKNOWN


def test_once_the_worker_gave_up_a_person_asks_and_the_run_goes_on(
    house: House, world: World, sign_in: SignIn, clock: Clock
) -> None:
    run, client = stuck(house, world), sign_in(house.operator)
    clock.move(timedelta(minutes=30))
    assert advance(run).state is State.NEEDS_HUMAN
    world.outage = ""

    ask(client, run)
    assert conclude(client, run, "happened")[0] == 302

    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:1042") == 1
