"""What a person sets for themselves: how they are called, in which language, zone and look pages are shown."""

from __future__ import annotations

import zoneinfo
from dataclasses import asdict, dataclass

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.models import Density, Theme, User
from accounts.people import LONGEST_NAME
from accounts.people_log import WrongValueError


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """All of them, as the settings show them. The fields are those of `User`."""

    display_name: str
    zone: str
    language: str  #: empty: as the browser asks
    theme: str
    density: str
    shortcuts: bool


def keep_preferences(*, person: User, preferences: Preferences) -> None:
    """Keep them all, or none. Raises WrongValueError."""
    if not preferences.display_name or len(preferences.display_name) > LONGEST_NAME:
        message = _("Enter a name of at most %(limit)d characters.") % {"limit": LONGEST_NAME}
        raise WrongValueError("display_name", message)
    if preferences.zone not in zoneinfo.available_timezones():
        raise WrongValueError("zone", _("Choose a time zone of the list."))
    for field, value, offered in (
        ("language", preferences.language, {"", *dict(settings.LANGUAGES)}),
        ("theme", preferences.theme, set(Theme.values)),
        ("density", preferences.density, set(Density.values)),
    ):
        if value not in offered:
            raise WrongValueError(field, _("Choose one of the list."))
    User.objects.filter(pk=person.pk).update(**asdict(preferences))


def keep_theme(*, person: User, theme: str) -> None:
    """Keep the theme alone. Raises WrongValueError."""
    if theme not in Theme.values:
        raise WrongValueError("theme", _("Choose one of the list."))
    User.objects.filter(pk=person.pk).update(theme=theme)


def keep_language(*, person: User, language: str) -> None:
    """Keep the language alone. Raises WrongValueError."""
    if language not in dict(settings.LANGUAGES):
        raise WrongValueError("language", _("Choose one of the list."))
    User.objects.filter(pk=person.pk).update(language=language)
