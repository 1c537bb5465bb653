"""Several runs of the inbox at once: what is harmless, or only asks. Nothing is decided, sent or ended here.

Each run is acted on by the action that its own page calls, in a transaction of its own, and has a line in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_http_methods

from accounts.guards import On, guarded
from accounts.models import User
from console.together_ask import ask
from runs import actions, seeing
from runs.access import NotPermitted, RunNotFound, visible_runs
from runs.actions import ASSIGNING, NOTE
from runs.actions.together import AT_MOST, Came, Line, form_of, keep_lines, kept_lines
from runs.actions.working import ASSIGN, CLAIM, RELEASE
from runs.ledger import LogUnreadable
from runs.machine.decide import ConclusionRefused
from runs.models import Run, Submission
from runs.pages import together as pages
from runs.pages import words, working
from runs.queries import holders_of_any
from runs.views.frame import (
    Context,
    console_page,
    new_submission,
    person_of,
    shell,
    show,
    submission_of,
    typed,
    uuid_of,
)
from runs.views.notes import wrong
from runs.views.refusals import (
    REFUSALS,
    Errors,
    FormWrong,
    Outdated,
    Refusal,
    Tried,
    damaged,
    keep_refused,
    record,
)
from runs.views.working import chosen

ASK: Final = "ask"
#: What the record of such a form is called, by what it did.
KEPT: Final = "together %s"


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A form about several runs, as it was sent."""

    person: User
    submission: UUID
    text: str = ""
    to: User | None = None
    until: float = 0.0  #: by this process's clock, when nothing more is begun


@dataclass(frozen=True, kw_only=True)
class Doing:
    """One thing that can be done with several runs."""

    title: Promise
    label: Promise  #: of the button in the inbox; with an ellipsis where a page asks for more first
    act: Callable[[Sent, Run], Line]
    asks: bool = False


def _form(sent: Sent, run: Run) -> UUID:
    return form_of(sent.submission, run.pk)


def _line(done: Submission) -> Line:
    code = done.result["outcome"]
    came = Came.SKIPPED if code in ("held", "not_yours", "same") else Came.DONE
    return Line(run=str(done.run_id), came=came, code=code, name=done.result.get("name", ""))


def _claim(sent: Sent, run: Run) -> Line:
    return _line(actions.claim_run(person=sent.person, run_id=run.pk, submission=_form(sent, run)))


def _release(sent: Sent, run: Run) -> Line:
    return _line(actions.release_run(person=sent.person, run_id=run.pk, submission=_form(sent, run)))


def _assign(sent: Sent, run: Run) -> Line:
    form = _form(sent, run)
    return _line(actions.assign_run(person=sent.person, run_id=run.pk, to=sent.to, submission=form))


def _note(sent: Sent, run: Run) -> Line:
    form = _form(sent, run)
    return _line(actions.note_run(person=sent.person, run_id=run.pk, text=sent.text, submission=form))


def _ask(sent: Sent, run: Run) -> Line:
    return ask(person=sent.person, run=run, submission=sent.submission, until=sent.until)


DOING: Final[dict[str, Doing]] = {
    CLAIM: Doing(title=gettext_lazy("Claim runs"), label=gettext_lazy("Claim"), act=_claim),
    RELEASE: Doing(title=gettext_lazy("Release runs"), label=pgettext_lazy("claim", "Release"), act=_release),
    ASSIGN: Doing(title=gettext_lazy("Assign runs"), label=gettext_lazy("Assign…"), act=_assign, asks=True),
    NOTE: Doing(
        title=gettext_lazy("Add a note to runs"), label=gettext_lazy("Add note…"), act=_note, asks=True
    ),
    ASK: Doing(
        title=gettext_lazy("Ask systems for receipts"), label=gettext_lazy("Ask systems for receipts"), act=_ask
    ),
}  # fmt: skip


def bar() -> Context:
    """The `together` of console/inbox.html."""
    buttons = [{"value": do, "label": doing.label} for do, doing in DOING.items()]
    return {
        "together": {"url": reverse("inbox-together"), "buttons": buttons, "submission": new_submission()}
    }


@console_page
@guarded(On.PERSON)
@require_http_methods(["GET", "HEAD", "POST"])
def together(request: HttpRequest) -> HttpResponse:
    """POST does it with the chosen runs, or asks first for what it takes; GET shows what a form did."""
    if request.method != "POST":
        return _result(request)
    named = list(dict.fromkeys(request.POST.getlist("run")))[: AT_MOST + 1]
    known = visible_runs(person_of(request)).in_bulk([run for run in named if "\x00" not in run])
    runs = [known[run] for run in named if run in known]
    do = request.POST.get("do", "")
    try:
        return _post(request, do, named, runs)
    except FormWrong as error:
        _keep(request, do, runs, error)
        return _page(request, do, named, runs, errors=error.errors, status=422)


def _post(request: HttpRequest, do: str, named: list[str], runs: list[Run]) -> HttpResponse:
    submission = submission_of(request)
    if submission is None:
        raise FormWrong(damaged())
    if errors := _unfit(do, named):
        raise FormWrong(errors)
    if DOING[do].asks and "sent" not in request.POST:
        return _page(request, do, named, runs)
    person = person_of(request)
    sent = Sent(
        person=person, submission=submission, **_asked(request, do, runs),
        until=monotonic() + settings.HANDOFF_DURATIONS.tool_timeout.total_seconds(),
    )  # fmt: skip
    if kept_lines(person, submission) is None:
        _act(request, do, sent, named, {run.pk: run for run in runs})
    query = urlencode({"done": submission, "back": _back(request)})
    return HttpResponseRedirect(f"{request.path}?{query}")


def _unfit(do: str, named: Sequence[str]) -> Errors:
    if do not in DOING:
        return [{"field": "", "message": _("Choose what is done with the runs.")}]
    if not named:
        return [{"field": "", "message": _("Select at least one run.")}]
    if len(named) > AT_MOST:
        message = _("Select at most %(most)d runs.") % {"most": AT_MOST}
        return [{"field": "", "message": message}]
    return []


def _asked(request: HttpRequest, do: str, runs: list[Run]) -> Context:
    """What the form was asked for. Raises FormWrong."""
    if do == ASSIGN:
        return {"to": chosen(request, _people(runs))}
    if do == NOTE:
        text = typed(request, "text")
        if errors := wrong(text):
            raise FormWrong(errors)
        return {"text": text}
    return {}


def _people(runs: list[Run]) -> list[User]:
    return holders_of_any(ASSIGNING, [run.pk for run in runs])


def _act(request: HttpRequest, do: str, sent: Sent, named: list[str], known: dict[str, Run]) -> None:
    """Act on one run after the other, and keep a line for each."""
    lines: dict[UUID, list[Line]] = {}
    home = sent.person.tenants().values_list("pk", flat=True).first()
    for run_id in named:
        run = known.get(run_id)
        line = _one(request, do, sent, run) if run else _not_seen(run_id)
        if tenant := run.tenant_id if run else home:
            lines.setdefault(tenant, []).append(line)
    keep_lines(person=sent.person, submission=sent.submission, action=KEPT % do, lines=lines)


def _not_seen(run_id: str) -> Line:
    return Line(run=run_id[:32].replace("\x00", ""), came=Came.FAILED, code="not_seen")


def _one(request: HttpRequest, do: str, sent: Sent, run: Run) -> Line:
    try:
        return DOING[do].act(sent, run)
    except RunNotFound:
        return _not_seen(run.pk)
    except REFUSALS as error:
        record(request, Tried(run=run, action=do, subject=run.pk, seen="", reason=sent.text), error)
        code, name = _why(error, sent)
        return Line(run=run.pk, came=Came.FAILED, code=code, name=name)


def _why(error: Refusal, sent: Sent) -> tuple[str, str]:
    match error:
        case NotPermitted():
            return "not_allowed", error.denial.sentence
        case ConclusionRefused(condition="assignee_may_not") if sent.to:
            return "assignee_may_not", sent.to.shown_name
        case LogUnreadable():
            return "unreadable", ""
        case Outdated():
            return "changed", error.now
        case _:
            return "refused", str(error)


def _keep(request: HttpRequest, do: str, runs: list[Run], error: FormWrong) -> None:
    keep_refused(
        request, tenant_id=runs[0].tenant_id if runs else None, action=do, refusal="form",
        subject=" ".join(run.pk for run in runs), detail={"why": str(error)}, reason=typed(request, "text"),
    )  # fmt: skip


def _back(request: HttpRequest) -> str:
    """The list that the form came from: a query of the inbox, and nothing else."""
    sent = request.POST.get("back") or request.GET.get("back", "")
    return sent if sent.startswith("?") else ""


def _page(
    request: HttpRequest,
    do: str,
    named: list[str],
    runs: list[Run],
    *,
    errors: Errors | None = None,
    status: int = 200,
) -> HttpResponse:
    """What it takes before it is done, or what was wrong in what was sent."""
    doing = DOING.get(do)
    form = {
        "do": do,
        "runs": _shown(person_of(request), runs),
        "ids": named,
        "choices": working.choices(_people(runs)) if do == ASSIGN else [],
        "submission": new_submission(),
    }
    context = {
        "title": doing.title if doing else _("Several runs"),
        "form": form if doing and doing.asks and 0 < len(named) <= AT_MOST else None,
        "values": {"text": request.POST.get("text", ""), "to": request.POST.get("to", "")},
        "errors": errors or [],
    }
    return _show(request, context, status)


def _show(request: HttpRequest, context: Context, status: int = 200) -> HttpResponse:
    back = _back(request)
    context |= {"back": back, "inbox_url": reverse("inbox") + back}
    return show(request, "console/together.html", {**shell(request), **context}, status=status)


def _shown(person: User, runs: Sequence[Run]) -> list[Context]:
    """The runs as this person may see them."""
    hidden = seeing.hidden_rows(seeing.not_seen(person, [run.pk for run in runs]))
    return [
        {
            "id": run.pk,
            "title": hidden[run.pk].text(run.goal) if run.pk in hidden else run.goal,
            "url": reverse("run", args=[run.pk]),
            "state": words.shown_state(run.state, run.reasons),
        }
        for run in runs
    ]


def _result(request: HttpRequest) -> HttpResponse:
    """What the form of the address did: a line per run. Without one, back to the inbox."""
    person, submission = person_of(request), uuid_of(request.GET.get("done", ""))
    found = kept_lines(person, submission) if submission else None
    if found is None:
        return HttpResponseRedirect(reverse("inbox") + _back(request))
    action, lines = found
    known = visible_runs(person).in_bulk([line.run for line in lines])
    shown = {row["id"]: row for row in _shown(person, list(known.values()))}
    rows = [_row(line, shown.get(line.run)) for line in lines]
    title = next((doing.title for do, doing in DOING.items() if KEPT % do == action), _("Several runs"))
    return _show(request, {"title": title, "lines": rows, "result": {"text": pages.summary(lines)}})


def _row(line: Line, run: Context | None) -> Context:
    seen = line if run else _not_seen(line.run)
    return {
        "id": line.run, "run": run, "came": seen.came.value, "came_text": pages.CAME[seen.came],
        "text": pages.said(seen),
    }  # fmt: skip
