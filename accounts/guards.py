"""What a page is about and what it takes, declared on its view: read by people, by the test of all addresses, and held.

A view about a run that answered without having asked whether this person may see that run does not get its answer out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Any, Concatenate, cast

from django.http import HttpRequest, HttpResponse

from accounts.permissions import Right


class On(StrEnum):
    """What the address names."""

    NOTHING = "nothing"  #: open to everybody, signed in or not
    PERSON = "person"  #: about whoever is signed in, and shows what that one may see
    TENANT = "tenant"  #: an organisation, or what belongs to one as a whole
    AGENT = "agent"
    RUN = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Who gets past a view. Reading takes `reads`, where that is not None; a POST any one of `acts` (none: it takes no
    POST) on the object of the address.
    """

    on: On
    acts: tuple[Right, ...] = ()
    reads: Right | None = None


class UnguardedError(RuntimeError):
    """A view about a run answered and had not loaded it by `run_for`. Nothing of the answer was sent."""


#: The objects on which a right was found held since the view began: (person, object).
_found: ContextVar[set[tuple[str, str]] | None] = ContextVar("handoff_found_held", default=None)


def note_held(*, person: object, object_pk: str) -> None:
    """A right of this person on this object was asked for just now, and is held."""
    if (found := _found.get()) is not None:
        found.add((str(person), object_pk))


@contextmanager
def _watching() -> Iterator[set[tuple[str, str]]]:
    found: set[tuple[str, str]] = set()
    token = _found.set(found)
    try:
        yield found
    finally:
        _found.reset(token)


type View[**P] = Callable[Concatenate[HttpRequest, P], HttpResponse]


def guarded[**P](
    on: On, *, acts: tuple[Right, ...] = (), reads: Right | None = None
) -> Callable[[View[P]], View[P]]:
    """Declare what a view is about and takes. Stands below `console_page`, next to the view or its methods."""
    guard = Guard(on=on, acts=acts, reads=reads or (Right.VIEW_RUNS if on in (On.RUN, On.AGENT) else None))

    def declare(view: View[P]) -> View[P]:
        @wraps(view)
        def page(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            with _watching() as found:
                response = view(request, *args, **kwargs)
            if on is On.RUN and response.status_code < 400 and not _asked(request, found, kwargs):
                raise UnguardedError(UnguardedError.__doc__)
            return response

        page.guard = guard  # type: ignore[attr-defined]
        return cast(View[P], page)

    return declare


def open_to_all[V: Callable[..., Any]](view: V) -> V:
    """Declare that whoever is not signed in gets this view too."""
    view.guard = Guard(on=On.NOTHING)  # type: ignore[attr-defined]
    return view


def _asked(request: HttpRequest, found: set[tuple[str, str]], kwargs: Any) -> bool:
    return (str(request.user.pk), str(kwargs["run_id"])) in found


def guard_of(view: Callable[..., Any]) -> Guard | None:
    """What the view declares; None for one that declares nothing, which the test of all addresses refuses."""
    return getattr(view, "guard", None)
