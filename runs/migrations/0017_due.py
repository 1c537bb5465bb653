"""What is owed is found by its due time also once it is recorded as overdue: the inbox lists it until it is done."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("runs", "0016_configuration")]

    operations = [
        migrations.RemoveIndex("obligation", "runs_obligation_due"),
        migrations.AddIndex(
            "obligation",
            models.Index(
                fields=["due_at"],
                condition=Q(discharged_seq__isnull=True, due_at__isnull=False),
                name="runs_obligation_open_due",
            ),
        ),
    ]
