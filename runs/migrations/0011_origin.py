"""What a form did keeps where it came from."""

from __future__ import annotations

from django.db import migrations, models

import accounts.origin


class Migration(migrations.Migration):
    dependencies = [("runs", "0010_grants")]

    operations = [
        # Of forms from before nobody knows; the default of later ones is no answer for them.
        migrations.AddField("submission", "origin", models.JSONField(default=dict)),
        migrations.AlterField("submission", "origin", models.JSONField(default=accounts.origin.origin)),
    ]
