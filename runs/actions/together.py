"""What one form did with several runs, kept so that the same form sent twice leads to the same answer.

Each run is acted on by the action of its own, in a transaction of its own, under `form_of`; nothing here moves a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID, uuid5

from accounts.models import User
from runs.clock import database_now
from runs.models import Submission

#: How many runs one form may name: somebody waits for the answer, and has looked at each of them.
AT_MOST: Final = 50


class Came(StrEnum):
    """What came of a run in a form about several."""

    DONE = "done"
    SKIPPED = "skipped"  #: there was nothing to do, or it was left as it is
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One run of the form. `code` says what was done or why not, `name` whom or what that is about."""

    run: str
    came: Came
    code: str
    name: str = ""


def form_of(submission: UUID, part: object) -> UUID:
    """The form's id for one run, or one tenant: the same however often the form is sent."""
    return uuid5(submission, str(part))


def keep_lines(*, person: User, submission: UUID, action: str, lines: Mapping[UUID, Sequence[Line]]) -> None:
    """Keep what the form did, by tenant. Where it was kept meanwhile, that stays."""
    kept = [
        Submission(
            id=form_of(submission, tenant), tenant_id=tenant, person=person, action=action, at=database_now(),
            result={"lines": [asdict(line) for line in some]},
        )
        for tenant, some in lines.items()
    ]  # fmt: skip
    Submission.objects.bulk_create(kept, ignore_conflicts=True)


def kept_lines(person: User, submission: UUID) -> tuple[str, list[Line]] | None:
    """The action of this person's form, and what it did; None where it did nothing yet."""
    ids = [form_of(submission, tenant) for tenant in person.tenants().values_list("pk", flat=True)]
    found = list(Submission.objects.filter(pk__in=ids, person=person).order_by("tenant_id"))
    if not found:
        return None
    lines = [Line(**{**line, "came": Came(line["came"])}) for form in found for line in form.result["lines"]]
    return found[0].action, lines
