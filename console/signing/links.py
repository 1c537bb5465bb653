"""Setting a password by a link that somebody who manages people gave."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.guards import open_to_all
from accounts.passwords import LinkGoneError, person_of_link, use_link
from accounts.people_log import PeopleRefusedError, WrongValueError
from runs.clock import database_now


@open_to_all
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def password_link(request: HttpRequest, token: str) -> HttpResponse:
    """GET shows whose password it is; POST sets it, once. Looking uses nothing up."""
    now = database_now()
    try:
        person = person_of_link(token, now)
        if request.method != "POST":
            return _page(request, person.username)
        password = request.POST.get("password", "")
        if password != request.POST.get("again", ""):
            return _page(request, person.username, WrongValueError("again", _("The two passwords differ.")))
        use_link(token=token, password=password, now=now)
    except LinkGoneError as error:
        return render(
            request, "registration/link_gone.html", {"now": now, "detail": error.sentence}, status=404
        )
    except PeopleRefusedError as error:
        return _page(request, person.username, error)
    return HttpResponseRedirect(f"{reverse('login')}?password=set")


def _page(request: HttpRequest, username: str, error: PeopleRefusedError | None = None) -> HttpResponse:
    errors = [{"field": error.field, "message": error.sentence}] if error else []
    context = {"now": database_now(), "username": username, "errors": errors}
    return render(request, "registration/password_link.html", context, status=422 if error else 200)
