"""Tags about saved views. `{% load saved_tags %}`.

`{% saved_views as saved %}`   what the navigation lists: `saved.views`, `saved.current` where the page is one of them
`{% view_links as links %}`   on the inbox: where its view is saved, its whole address to share,
    and the result where it was saved just now
`{% gone_values as gone %}`   on the inbox: sentences about what its address asks for and is not there any more
"""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.saved_views import views_seen_by
from console import saved_views as saved
from console.inbox import Asked
from runs.views.frame import number

register = template.Library()


@register.simple_tag(takes_context=True)
def saved_views(context: Context) -> dict[str, Any]:
    """Nothing for whoever has none, without a query."""
    person, request = context.get("user"), context.get("request")
    if not (context.get("has_views") and isinstance(person, User) and request is not None):
        return {"views": [], "current": False}
    here = request.path == reverse("inbox") and "view" in request.GET
    at = Asked.read(request.GET).url(page=1) if here else ""
    views = saved.listed(person, context.get("now") or timezone.now(), at=at)
    return {"views": views, "current": any(view["current"] for view in views)}


@register.simple_tag(takes_context=True)
def view_links(context: Context) -> dict[str, Any]:
    """Nothing where the page is no real inbox."""
    asked, request, person = context.get("filters"), context.get("request"), context.get("user")
    if not (isinstance(asked, Asked) and isinstance(person, User) and request is not None):
        return {}
    kept = number(request.GET.get("kept"))
    view = views_seen_by(person).filter(pk=kept).first() if kept is not None else None
    return {
        "save": reverse("view-new") + asked.url(page=1),
        "share": request.build_absolute_uri(reverse("inbox") + asked.url()),
        "kept": {"text": _("This view was saved as “%(name)s”.") % {"name": view.name}} if view else None,
    }


@register.simple_tag(takes_context=True)
def gone_values(context: Context) -> list[str]:
    """Nothing where all that is asked for is there."""
    person, request = context.get("user"), context.get("request")
    if not isinstance(person, User) or request is None:
        return []
    return saved.gone(person, request.GET, context.get("agents") or ())
