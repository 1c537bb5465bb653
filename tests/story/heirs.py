"""The fleet that comes after: two later versions of the refund agent that take the runs of the first one over."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import ClassVar

from examples.refunds.agent import REFUNDS
from examples.refunds.tools.mail import MailSupplier


class PatientMail(MailSupplier):
    """The same messages, declared with more patience."""

    patience: ClassVar[timedelta | None] = timedelta(minutes=1)


#: Nothing that an approval rests on is different.
SAME = replace(REFUNDS, version="2", takes_over=("1",), versions={"prompt": "2"})
#: Another declaration of a tool that every plan uses.
CHANGED = replace(
    SAME,
    version="3",
    tools=tuple(PatientMail() if isinstance(t, MailSupplier) else t for t in REFUNDS.tools),
)
