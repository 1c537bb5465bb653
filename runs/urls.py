"""Addresses of the pages about runs."""

from __future__ import annotations

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from runs.views import (
    answer,
    attest,
    check,
    constraints,
    events,
    files,
    find,
    goal,
    grants,
    handoff,
    limit,
    live,
    notes,
    obligations,
    observations,
    pages,
    reconcile,
    replay,
    rereduce,
    review,
    steer,
    taking_back,
    values,
    working,
)


class RunId(StringConverter):
    """What can be a run's id at all; anything else is no address of a run."""

    regex = "run_[0-9A-Z]{1,28}"


register_converter(RunId, "run")

urlpatterns = [
    path("runs/<run:run_id>/", pages.run, name="run"),
    path("runs/<run:run_id>/notices/", live.run_notices, name="run-notices"),
    path("runs/<run:run_id>/handoff/", handoff.handoff, name="run-handoff"),
    path("runs/<run:run_id>/handoff.json", handoff.handoff_json, name="run-handoff-json"),
    path("runs/<run:run_id>/claim/", working.claim, name="run-claim"),
    path("runs/<run:run_id>/assign/", working.assign, name="run-assign"),
    path("runs/<run:run_id>/notes/", notes.notes, name="run-notes"),
    path("runs/<run:run_id>/plan/<int:version>/", pages.plan, name="plan"),
    path("runs/<run:run_id>/plan/<int:version>/review/", review.review, name="plan-review"),
    path("runs/<run:run_id>/plan/<int:version>/value/<int:value>/", values.value, name="plan-value"),
    path("runs/<run:run_id>/plan/<int:version>/take-back/", taking_back.take_back, name="plan-take-back"),
    path("runs/<run:run_id>/effects/<int:effect>/reconcile/", reconcile.reconcile, name="effect-reconcile"),
    path("runs/<run:run_id>/effects/<int:effect>/attest/", attest.attest, name="effect-attest"),
    path("runs/<run:run_id>/effects/<int:effect>/finding/", find.find, name="effect-finding"),
    path("runs/<run:run_id>/effects/<int:effect>/ask/", reconcile.ask, name="effect-ask"),
    path("runs/<run:run_id>/goal/revise/", goal.revise, name="run-goal"),
    path("runs/<run:run_id>/constraints/add/", limit.add, name="run-constraint-add"),
    path(
        "runs/<run:run_id>/constraints/<int:constraint>/confirm/",
        limit.confirm,
        name="run-constraint-confirm",
    ),
    path(
        "runs/<run:run_id>/constraints/<int:constraint>/revoke/", constraints.revoke, name="constraint-revoke"
    ),
    path(
        "runs/<run:run_id>/constraints/<int:constraint>/accept/", constraints.accept, name="constraint-accept"
    ),
    path("runs/<run:run_id>/stop/", steer.stop, name="run-stop"),
    path("runs/<run:run_id>/decide/", steer.decide, name="run-decide"),
    path("runs/<run:run_id>/lend/", steer.lend, name="run-lend"),
    path("runs/<run:run_id>/check/", check.check, name="run-check"),
    path("runs/<run:run_id>/move/", steer.move, name="run-move"),
    path("runs/<run:run_id>/answer/", answer.answer, name="run-answer"),
    path("runs/<run:run_id>/obligations/add/", obligations.add, name="obligation-add"),
    path(
        "runs/<run:run_id>/obligations/<int:obligation>/attest/", obligations.attest, name="obligation-attest"
    ),
    path(
        "runs/<run:run_id>/obligations/<int:obligation>/hand-on/",
        obligations.hand_on,
        name="obligation-hand-on",
    ),
    path("runs/<run:run_id>/observations/read/", observations.read, name="observations-read"),
    path("runs/<run:run_id>/renew/", steer.renew, name="run-renew"),
    path("runs/<run:run_id>/replay/", replay.replay, name="run-replay"),
    path("runs/<run:run_id>/rereduce/", rereduce.rereduce, name="run-rereduce"),
    path("runs/<run:run_id>/artifacts/", files.run_artifacts, name="run-artifacts"),
    path("runs/<run:run_id>/artifacts/<int:artifact>/", files.run_artifact, name="run-artifact"),
    path("runs/<run:run_id>/events/", events.events, name="run-events"),
    path("grants/", grants.listed, name="grants"),
    path("grants/<uuid:grant>/end/", grants.end, name="grant-end"),
]
