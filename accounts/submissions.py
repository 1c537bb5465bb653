"""A form's id is good for one action, whoever sends it and about whatever."""

from __future__ import annotations

from uuid import UUID

from django.db import connection


def alone(submission: UUID) -> None:
    """Until the transaction ends, let nobody else act by the form of this id. Then read whether it was used.

    Two forms about one run wait for each other by the run's lock; with one id for two runs only this keeps them apart.
    Taken after the locks of what the form is about.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"form:{submission}"])
