"""What every page of the console has: a signed-in person, no cache, the shell's context."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, cast
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.organisations import standing
from accounts.second_factors import lacks_factor
from accounts.zones import zone_of
from runs.access import RunNotFound
from runs.clock import database_now
from runs.ledger import LogUnreadable
from runs.pages import words
from runs.queries import Counted, counted_for
from runs.seeing import sweeping

Context = dict[str, Any]
#: The names of the addresses on which people set up a second factor begin so.
SET_UP_FACTOR = "settings-factor"


def console_page[**P](
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """A page for a signed-in person: never stored by a cache, and 404 for what this person may not see."""

    @wraps(view)
    def page(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if _lacks_factor(request):
            return HttpResponseRedirect(reverse(SET_UP_FACTOR))
        with zone_of(person_of(request)), sweeping() as swept:
            try:
                response = view(request, *args, **kwargs)
            except RunNotFound as error:
                raise Http404 from error
            except LogUnreadable as error:
                response = _unreadable(request, error)
            _sweep(response, swept)
        patch_cache_control(response, no_store=True, private=True)
        patch_vary_headers(response, ["HX-Request"])
        return response

    return cast(Callable[Concatenate[HttpRequest, P], HttpResponse], login_required(page))


def _sweep(response: HttpResponse, swept: Callable[[str], str]) -> None:
    """Take out what is hidden from the person and still stands in the answer. Files were looked at before they came."""
    kind = response.get("Content-Type", "").partition(";")[0]
    if not response.streaming and (kind.startswith("text/") or kind == "application/json"):
        text = response.content.decode(response.charset)
        if (clean := swept(text)) != text:
            response.content = clean.encode(response.charset)


def _lacks_factor(request: HttpRequest) -> bool:
    """Whether an organisation demands a second factor that the person has not set up: then nothing else is shown."""
    found = request.resolver_match
    if found is None or (found.url_name or "").startswith(SET_UP_FACTOR):
        return False
    return lacks_factor(person_of(request))


def _unreadable(request: HttpRequest, error: LogUnreadable) -> HttpResponse:
    """409: the log cannot be read by this version. The run page says what is known, raw events are always shown."""
    context = {
        "incident_id": getattr(request, "request_id", ""),
        "detail": _("The log of this run cannot be read by this version: %(why)s.")
        % {"why": words.inside(error)},
        "back_url": reverse("run-events", args=[error.run]),
        "back_label": _("Raw events"),
    }
    return show(request, "errors/409.html", {**shell(request), **context}, status=409)


def person_of(request: HttpRequest) -> User:
    """The signed-in person. Only for pages behind `console_page`."""
    assert isinstance(request.user, User)
    return request.user


SIGNED_IN_AT = "signed_in_at"
KEPT_TEXTS = "kept_texts"


def mark_signed_in(request: HttpRequest, now: datetime) -> None:
    """Keep in the session when the person last proved who they are."""
    request.session[SIGNED_IN_AT] = now.isoformat()


def signed_in_at(request: HttpRequest) -> datetime | None:
    """When the person last proved who they are in this session; None: nobody knows."""
    kept = request.session.get(SIGNED_IN_AT)
    return datetime.fromisoformat(kept) if kept else None


def keep_texts(request: HttpRequest, path: str, fields: tuple[str, ...]) -> None:
    """Keep what was typed until the person has signed in again and is back at that page: texts, never a decision."""
    texts = {name: request.POST[name] for name in fields if request.POST.get(name)}
    request.session[KEPT_TEXTS] = {"path": path, "texts": texts}


def kept_texts(request: HttpRequest) -> dict[str, str]:
    """What was typed on this page before its person had to sign in again, given back once."""
    kept = request.session.get(KEPT_TEXTS, {})
    if kept.get("path") != request.path:
        return {}
    texts: dict[str, str] = request.session.pop(KEPT_TEXTS)["texts"]
    return texts


def shell(request: HttpRequest, *, now: datetime | None = None, notices: str = "") -> Context:
    """The context of base.html, with the database's time. `notices` is where the page asks for news."""
    now = now or database_now()
    own = standing(person_of(request))
    return {
        "now": now,
        "checked_at": now,
        **nav_counts(counted_for(person_of(request), now)),
        "notices_url": notices,
        "poll": settings.HANDOFF_DURATIONS.page_poll,
        "manages_people": own.manages_people,
        "manages_organisations": own.manages_organisations and not own.manages_people,
        "has_views": own.has_views,
    }


def nav_counts(found: Counted) -> Context:
    """The numbers of the nav, for the shell and for what the poll answers."""
    return {"inbox_count": found.waiting, "mine_count": found.mine}


def show(request: HttpRequest, template: str, context: Context, *, status: int = 200) -> HttpResponse:
    """The page, with "Error:" before its title where it is about a mistake in a form."""
    prefix = {"title_prefix": "Error:"} if status == 422 else {}
    return render(request, template, {**prefix, **context}, status=status)


def new_submission() -> str:
    """The id of one rendering of a form: whatever is sent with it is recorded once."""
    return str(uuid4())


def typed(request: HttpRequest, field: str) -> str:
    """What a person typed into a field, without blanks around it; a NUL, which no database takes, is shown as lost."""
    return request.POST.get(field, "").strip().replace("\x00", "\N{REPLACEMENT CHARACTER}")


def query_value(request: HttpRequest, name: str) -> str:
    """A value of the address, as a database can look for it."""
    return value_in(request.GET, name)


def value_in(sent: QueryDict, name: str) -> str:
    """A value of a query, as a database can look for it."""
    return sent.get(name, "").strip().replace("\x00", "")


def submission_of(request: HttpRequest) -> UUID | None:
    """The form's id as it came back; None where it is no id."""
    return uuid_of(request.POST.get("submission", ""))


def uuid_of(text: str) -> UUID | None:
    """The id that the text is, else None."""
    try:
        return UUID(text)
    except ValueError:
        return None


def number(text: str | None) -> int | None:
    """A whole number from an address or a form; None for anything else."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else None
