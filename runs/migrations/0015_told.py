"""That the runs which a version of a constraint concerns were told of it, and which of their rows still may have to be."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0014_obligations")]

    operations = [
        migrations.CreateModel(
            name="Told",
            fields=[
                (
                    "statement",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name="told",
                        serialize=False, to="runs.statement",
                    ),
                ),
                ("at", models.DateTimeField()),
            ],
        ),
        migrations.AddIndex(
            model_name="constraint",
            index=models.Index(
                condition=models.Q(("withdrawn_seq__isnull", True)), fields=["source_ref", "run"],
                name="runs_constraint_holds",
            ),
        ),
        migrations.RunSQL(
            "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON runs_told "
            "FOR EACH STATEMENT EXECUTE FUNCTION handoff_append_only();",
            "DROP TRIGGER append_only ON runs_told;",
        ),
    ]  # fmt: skip
