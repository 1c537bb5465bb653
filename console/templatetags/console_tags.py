"""Tags and filters of the console's templates. `{% load console_tags %}`.

`{% status_tag state %}`, `{% status_tag state kind="effect" %}`   icon and words; kinds: run, effect,
    approval, check, mark, actor (tables in labels.py)
`{% id_chip value %}`, `{% digest value %}`, `{% digest value full=True %}`   monospace with a copy button
`{% when moment %}`   absolute, with its zone, and age; `relative=False`, `ms=True`, `clock=True` (time of day)
`{% countdown moment %}`   remaining time in text, kept current by the script
`{% untrusted text %}`   text from an agent, tool, file or person: escaped, hidden characters shown, isolated
`{% word_diff parts %}`   what changed in a text, each part with a sign and a word
`{{ text|reveal }}`, `{{ text|shown }}` in an attribute, `{{ text|hidden_count }}`, `{{ amount|money:"EUR" }}`
`{% longest_text as limit %}`   how many characters a reason or a note may have
`{% field_error errors "reason" %}`   the messages of one field, with the id that `aria-describedby` names
`{% icon "arrow" %}`, `{% env_label %}`, `{% look as look %}`, `{% other_languages as others %}`, `{% units %}`,
    `{% zone as here %}`   used by the shell
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from django import template
from django.conf import settings
from django.template import Context
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy, pgettext
from django.utils.translation import gettext as _

from accounts.models import Density, Theme, User
from accounts.zones import name_at
from console.people.preferences import THEME_COOKIE, offered_languages
from runs.limits import LONGEST_TEXT
from runs.pages.hidden import shown
from runs.pages.word_diff import Change, Part

from . import durations, icons, labels
from . import reveal as revealing

register = template.Library()

register.filter("reveal", revealing.reveal, is_safe=True)
register.filter("shown", shown)  # in an attribute, which takes no markup
register.filter("hidden_count", revealing.hidden_count)
register.simple_tag(icons.icon, name="icon")

_NUMBER: Final = re.compile(r"(-?)(\d+)(\.\d+)?")
_EMPTY: Final = SafeString("–")


@register.simple_tag
def status_tag(state: str, kind: str = "run", text: str = "") -> SafeString:
    """The state as icon and words on a tint when loud, without when quiet; `text` replaces the words."""
    words, tone, glyph, loud = labels.label(str(state), kind)
    return format_html(
        '<span class="tag tone-{} {}" data-state="{}">{}<span>{}</span></span>',
        tone,
        "loud" if loud else "quiet",
        state,
        icons.icon(glyph),
        text or words,
    )


@register.simple_tag
def run_state_words(state: str) -> str | Promise:
    """A run's state in words, for the page's title."""
    return labels.label(str(state), "run").text


@register.simple_tag
def mark(state: str) -> SafeString:
    """The mark of a handoff line: a glyph, with its meaning as text for those who do not see it."""
    words, tone, glyph, _loud = labels.label(str(state), "mark")
    return format_html(
        '<span class="mark tone-{}">{}<span class="unseen">{} </span></span>', tone, icons.icon(glyph), words
    )


@register.simple_tag
def no_undo() -> SafeString:
    """The label of what cannot be undone."""
    return format_html(
        '<span class="tag lock">{}<span>{}</span></span>', icons.icon("no-undo"), _("Cannot be undone")
    )


@register.filter
def risk_label(tier: str) -> str | Promise:
    """critical, high, medium or low as a word."""
    return labels.RISK.get(str(tier), str(tier))


@register.filter
def handoff_label(key: str) -> str | Promise:
    """The name of a handoff line."""
    return labels.HANDOFF.get(str(key), str(key))


@register.simple_tag
def change_mark(change: str) -> SafeString:
    """How a plan step differs from the base, as a sign and a word."""
    sign, words = labels.CHANGE.get(str(change), ("", str(change)))
    return format_html('<span class="change change-{}"><b>{}</b> {}</span>', change, sign, words)


#: How each part of a difference is marked, beside its colour: element, sign, and the word for who hears the page.
_DIFF: Final = {
    Change.REMOVED: ("del", "−", gettext_lazy("removed:")),
    Change.ADDED: ("ins", "+", gettext_lazy("added:")),
}


@register.simple_tag
def word_diff(parts: Iterable[Part]) -> SafeString:
    """What changed in a text, in reading order, with a sign before what is gone and what is new."""
    return format_html(
        '<p class="word-diff" dir="auto" data-content hx-disable>{}</p>',
        format_html_join("", "{}", map(_part, parts)),
    )


def _part(part: Part) -> tuple[SafeString]:
    shown = revealing.reveal(part.text)
    if part.change not in _DIFF:
        return (format_html("<span>{}</span>", shown),)
    tag, sign, word = _DIFF[part.change]
    return (
        format_html(
            '<{0}><b aria-hidden="true">{1}</b><span class="unseen">{2} </span>{3}</{0}>',
            tag,
            sign,
            word,
            shown,
        ),
    )


@register.simple_tag
def copy_button(value: object) -> SafeString:
    """A button that copies the full value; shown only where the script runs."""
    title = _("Copy %(value)s") % {"value": value}
    return format_html(
        '<button type="button" class="copy" data-copy="{}" aria-label="{}">{}</button>',
        value,
        title,
        icons.icon("copy"),
    )


@register.simple_tag
def id_chip(value: object, copy: bool = True) -> SafeString:
    """An id in full, monospace, left to right, with its copy button."""
    if value in (None, ""):
        return _EMPTY
    button = copy_button(value) if copy else ""
    return format_html(
        '<span class="chip"><code dir="ltr">{}</code>{}</span>', revealing.reveal(value), button
    )


@register.simple_tag
def digest(value: object, full: bool = False, copy: bool = True) -> SafeString:
    """A digest: first 6 and last 4 of the hex seen, all of it in the text, in copies and in print."""
    if value in (None, ""):
        return _EMPTY
    text = str(value)
    prefix, _colon, body = text.rpartition(":")
    button = copy_button(text) if copy else ""
    if full or len(body) <= 12:
        return format_html('<span class="chip"><code class="wrap" dir="ltr">{}</code>{}</span>', text, button)
    head = f"{prefix}:{body[:6]}" if prefix else body[:6]
    return format_html(
        '<span class="chip"><code class="digest" dir="ltr">{}<span class="middle" aria-hidden="true">{}</span>{}'
        "</code>{}</span>",
        head,
        body[6:-4],
        body[-4:],
        button,
    )


def _now(context: Context) -> datetime:
    """The page's time: the view's `now`, so that all ages on a page agree, else this process's clock."""
    now = context.get("now")
    return now if isinstance(now, datetime) else timezone.now()


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@register.simple_tag(takes_context=True)
def when(
    context: Context,
    moment: datetime | None,
    relative: bool = True,
    ms: bool = False,
    clock: bool = False,
) -> SafeString:
    """A time: absolute in the reader's zone and, unless `relative` is false or only the clock is asked for, its age."""
    if moment is None:
        return _EMPTY
    text = durations.absolute(moment, milliseconds=ms, clock=clock)
    stamp = format_html('<time datetime="{}">{}</time>', _stamp(moment), text)
    if clock or ms or not relative:
        return stamp
    age = durations.relative(moment, now=_now(context))
    return format_html('{} <span class="age" data-age="{}">({})</span>', stamp, _stamp(moment), age)


@register.simple_tag(takes_context=True)
def age(context: Context, moment: datetime | None) -> SafeString:
    """Only the age ("42 min"), for a column whose absolute time stands beside it."""
    if moment is None:
        return _EMPTY
    text = durations.span(_now(context) - moment)
    return format_html('<span data-age="{}" data-form="bare">{}</span>', _stamp(moment), text)


@register.simple_tag(takes_context=True)
def countdown(context: Context, moment: datetime) -> SafeString:
    """What is left until a time, in text; the script keeps it current by the server's clock."""
    left = durations.span(moment - _now(context), exact=True)
    return format_html('<span class="countdown" data-until="{}">{}</span>', _stamp(moment), left)


@register.simple_tag(takes_context=True)
def server_time(context: Context) -> str:
    """The page's time as the script reads it."""
    return _stamp(_now(context))


@register.simple_tag(takes_context=True)
def now_utc(context: Context) -> SafeString:
    """The page's time, the time of day alone."""
    return when(context, _now(context), clock=True)


@register.simple_tag
def path_of(url: str) -> str:
    """An address without its query, by which the script knows that an answer came from where it was asked."""
    return urlsplit(str(url)).path


@register.filter
def seconds(length: object) -> str:
    """A timedelta as seconds for the script; a number stays as it is."""
    total = getattr(length, "total_seconds", None)
    return f"{total() if total else length}"


@register.filter
def span(length: Any) -> str:
    """A timedelta in words, with seconds below an hour."""
    return durations.span(length, exact=True)


@register.simple_tag
def untrusted(text: object, mono: bool = False) -> SafeString:
    """Text that others wrote: escaped, hidden characters shown, kept apart from the line's own direction."""
    if text is None:
        return _EMPTY
    return format_html(
        '<span class="{}" dir="{}" data-content hx-disable>{}</span>',
        "said mono" if mono else "said",
        "ltr" if mono else "auto",
        revealing.reveal(text),
    )


@register.filter
def money(amount: object, currency: str = "") -> str:
    """An amount as stored, digits in groups of three, with no-break spaces; what is no number stays as it is."""
    number = _NUMBER.fullmatch(str(amount))
    if not number:
        return f"{currency} {amount}".strip()
    sign, whole, fraction = number.groups()
    grouped = f"{int(whole):,}".replace(",", "\u00a0")
    return f"{currency}\u00a0{sign}{grouped}{fraction or ''}".strip("\u00a0")


@register.simple_tag
def longest_text() -> int:
    """How many characters a reason or a note may have."""
    return LONGEST_TEXT


@register.simple_tag
def field_error(errors: Iterable[Mapping[str, str]] | None, field: str) -> SafeString:
    """The messages of one field, or nothing. `errors` is a list of {"field", "message"}."""
    found = [(e["message"],) for e in errors or () if e["field"] == field]
    if not found:
        return SafeString("")
    lines = format_html_join("", "<span>{}</span>", found)
    return format_html('<p class="field-error" id="error-{}">{}</p>', field, lines)


@register.simple_tag
def describe(errors: Iterable[Mapping[str, str]] | None, field: str, hint: str = "") -> SafeString:
    """The attributes of a field that has errors or a hint: aria-invalid and aria-describedby."""
    wrong = any(e["field"] == field for e in errors or ())
    ids = " ".join(filter(None, (hint, f"error-{field}" if wrong else "")))
    described = format_html(' aria-describedby="{}"', ids) if ids else SafeString("")
    return format_html("{}{}", described, SafeString(' aria-invalid="true"' if wrong else ""))


@register.simple_tag
def env_label() -> SafeString:
    """The environment in words; only production has the dark bar, all others the hatched one."""
    profile = str(getattr(settings, "HANDOFF_PROFILE", "production"))
    names = {
        "production": pgettext("environment", "PRODUCTION"),
        "demo": pgettext("environment", "DEMO"),
        "test": pgettext("environment", "TEST"),
    }
    kind = "live" if profile == "production" else "other"
    return format_html(
        '<span class="env env-{}" data-testid="env-label">{}</span>', kind, names.get(profile, profile)
    )


@register.simple_tag(takes_context=True)
def look(context: Context) -> dict[str, Any]:
    """How the page is to look: `theme` and `density`, as the person set them; who is not signed in has a cookie.

    And `shortcuts`: whether single keys do something on it.
    """
    person, request = context.get("user"), context.get("request")
    if isinstance(person, User):
        own = {"theme": person.theme, "density": person.density, "shortcuts": person.shortcuts}
        return {**own, "themes": Theme.choices}
    kept = request.COOKIES.get(THEME_COOKIE, "") if request is not None else ""
    theme = kept if kept in Theme.values else Theme.SYSTEM
    return {"theme": theme, "density": Density.COMFORTABLE, "themes": Theme.choices}


@register.simple_tag
def other_languages() -> list[dict[str, Any]]:
    """The languages that pages are offered in beside the one of this page."""
    return [language for language in offered_languages() if language["value"] != get_language()]


@register.simple_tag(takes_context=True)
def zone(context: Context) -> dict[str, str]:
    """The zone in which the page's times are written, for the script and for captions: its id, and its name now."""
    local = _now(context).astimezone(timezone.get_current_timezone())
    return {"id": str(timezone.get_current_timezone()), "name": name_at(local)}


@register.simple_tag
def units() -> SafeString:
    """The words of durations as data attributes, for the script."""
    pairs = ((name, text) for name, text in durations.UNITS.items())
    return format_html_join(" ", 'data-unit-{}="{}"', pairs)
