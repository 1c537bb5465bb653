"""What the pages of an agent's own package are made with: the console's frame, and its records.

`console_page` around a view · `person_of` the signed-in person · `shell` and `show` the page in its frame
`new_submission` and `submission_of` the form's id · `keep_result` and `kept_result` what a form did, once
`keep_refused` a refused attempt · `guarded` declares what a page is about and takes
`who_can` the people who may do a thing, as a sentence
"""

from __future__ import annotations

from accounts.guards import On, guarded
from runs.pages.who import who_can
from runs.views.frame import (
    Context,
    console_page,
    new_submission,
    person_of,
    shell,
    show,
    submission_of,
    uuid_of,
)
from runs.views.refusals import keep_refused
from runs.views.results import keep_result, kept_result

__all__ = [
    "Context",
    "On",
    "console_page",
    "guarded",
    "keep_refused",
    "keep_result",
    "kept_result",
    "new_submission",
    "person_of",
    "shell",
    "show",
    "submission_of",
    "uuid_of",
    "who_can",
]
