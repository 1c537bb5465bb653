"""How pages are shown to a person: what the settings ask for, and the two choices that stand on every page.

A person's own choice counts wherever they sign in. The browser keeps a copy in cookies, for the pages of signing in.
"""

from __future__ import annotations

import zoneinfo
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import get_language_info
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.guards import On, guarded, open_to_all
from accounts.models import Density, Theme, User
from accounts.people_log import WrongValueError
from accounts.preferences import Preferences, keep_language, keep_preferences, keep_theme
from console.signing.way_back import way_back
from runs.views.frame import Context, console_page, person_of, typed

THEME_COOKIE = "theme"
A_YEAR = 365 * 24 * 60 * 60
Option = dict[str, Any]


def shown(request: HttpRequest) -> Context:
    """What the settings show of it: the values in force, or as they were typed, and what there is to choose from."""
    languages = [{"value": "", "label": _("As the browser asks")}, *offered_languages()]
    return {
        "values": _typed(request) if request.method == "POST" else _kept(person_of(request)),
        "zones": sorted(zoneinfo.available_timezones()),
        "languages": languages if len(languages) > 2 else [],
        "themes": _options(Theme),
        "densities": _options(Density),
    }


def offered_languages() -> list[Option]:
    """Each by its own name. Where there is one only, there is nothing to choose."""
    codes = [code for code, _name in settings.LANGUAGES]
    return [{"value": code, "label": get_language_info(code)["name_local"]} for code in codes]


def _options(choices: type[Theme] | type[Density]) -> list[Option]:
    return [{"value": choice.value, "label": choice.label} for choice in choices]


def _kept(person: User) -> Context:
    names = ("zone", "language", "theme", "density", "shortcuts")
    return {"display_name": person.display_name, **{name: getattr(person, name) for name in names}}


def _typed(request: HttpRequest) -> Context:
    names = ("display_name", "zone", "language", "theme", "density")
    return {**{name: typed(request, name) for name in names}, "shortcuts": "shortcuts" in request.POST}


def save(request: HttpRequest) -> None:
    """Keep what the form says. What it does not ask for stays. Raises WrongValueError."""
    person = person_of(request)
    stays = {name: getattr(person, name) for name in ("language", "theme", "density")}
    sent = _typed(request) | {name: kept for name, kept in stays.items() if name not in request.POST}
    keep_preferences(person=person, preferences=Preferences(**sent))


def remember(response: HttpResponse, *, language: str, theme: str) -> None:
    """Let the browser know it too: who signed out has no settings here."""
    for name, value in ((settings.LANGUAGE_COOKIE_NAME, language), (THEME_COOKIE, theme)):
        if value in ("", Theme.SYSTEM):
            response.delete_cookie(name, samesite="Lax")
        else:
            _cookie(response, name, value)


def _cookie(response: HttpResponse, name: str, value: str) -> None:
    response.set_cookie(
        name, value, max_age=A_YEAR, samesite="Lax", secure=settings.SESSION_COOKIE_SECURE, httponly=False
    )


@console_page
@guarded(On.PERSON)
@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Keep the theme that was chosen in the header of a page, which has it already."""
    try:
        keep_theme(person=person_of(request), theme=typed(request, "theme"))
    except WrongValueError as error:
        return HttpResponse(error.sentence, status=422, content_type="text/plain")
    return HttpResponse(status=204)


@open_to_all
@require_POST
def language(request: HttpRequest) -> HttpResponse:
    """Show the same page in another language: kept with the person, or by the browser of whoever is not signed in."""
    response = HttpResponseRedirect(way_back(request))
    chosen = request.POST.get("language", "")
    if chosen not in dict(settings.LANGUAGES):
        return response
    if isinstance(request.user, User):
        keep_language(person=request.user, language=chosen)
    _cookie(response, settings.LANGUAGE_COOKIE_NAME, chosen)
    return response
