"""A decision keeps where it came from."""

from __future__ import annotations

from django.db import migrations, models

import accounts.origin


class Migration(migrations.Migration):
    dependencies = [("approvals", "0003_policies")]

    operations = [
        # Of decisions from before nobody knows; the default of later ones is no answer for them.
        migrations.AddField("decision", "origin", models.JSONField(default=dict)),
        migrations.AlterField("decision", "origin", models.JSONField(default=accounts.origin.origin)),
    ]
