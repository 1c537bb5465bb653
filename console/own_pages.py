"""What the pages of an agent's own package are made with: the console's frame, and its records.

`console_page` around a view · `person_of` the signed-in person · `shell` and `show` the page in its frame
`new_submission` and `submission_of` the form's id · `keep_result` and `kept_result` what a form did, once
`keep_refused` a refused attempt · `typed` what was typed into a field · `damaged` the error of a form without an id
`guarded` declares what a page is about and takes
`who_can` the people who may do a thing, as a sentence · `joined` a list and `moment` a time inside one
`lending_facts` what sentences say of a grant · `why_address_at` where it is told why one can or cannot
"""

from __future__ import annotations

from accounts.guards import On, guarded
from runs.pages.who import who_can, why_address_at
from runs.pages.words import joined, lending_facts, moment
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
from runs.views.refusals import damaged, keep_refused
from runs.views.results import keep_result, kept_result

__all__ = [
    "Context",
    "On",
    "console_page",
    "damaged",
    "guarded",
    "joined",
    "keep_refused",
    "keep_result",
    "kept_result",
    "lending_facts",
    "moment",
    "new_submission",
    "person_of",
    "shell",
    "show",
    "submission_of",
    "typed",
    "uuid_of",
    "who_can",
    "why_address_at",
]
