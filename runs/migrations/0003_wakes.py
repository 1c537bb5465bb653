"""What the sweep woke, and when: hints, so the table is written without a log and empty after a crash."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_ledger")]

    operations = [
        migrations.CreateModel(
            name="Wake",
            fields=[
                ("run_id", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.RunSQL("ALTER TABLE runs_wake SET UNLOGGED", reverse_sql=migrations.RunSQL.noop),
    ]
