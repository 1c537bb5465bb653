"""The groups of a tenant."""

from __future__ import annotations

import django.db.models.deletion
import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_fence"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name="TenantGroup",
            fields=[
                (
                    "group",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="of_tenant",
                        serialize=False,
                        to="auth.group",
                    ),
                ),
                ("title", models.CharField(max_length=100)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="groups",
                        to="accounts.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        models.F("tenant"),
                        django.db.models.functions.text.Lower("title"),
                        name="accounts_tenantgroup_one_title",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("title__regex", "^\\S(.*\\S)?$")),
                        name="accounts_tenantgroup_has_title",
                    ),
                ],
            },
        ),
    ]
