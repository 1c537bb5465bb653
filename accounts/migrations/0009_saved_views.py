"""Lists of runs that are kept under a name, of one person or for all people of a tenant."""

from __future__ import annotations

import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0008_fence_joining"),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(max_length=1000)),
                ("place", models.PositiveSmallIntegerField()),
                ("at", models.DateTimeField()),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("person__isnull", True), ("tenant__isnull", True), _connector="XOR"
                        ),
                        name="accounts_savedview_one_holder",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("name__regex", "^\\S(.*\\S)?$")),
                        name="accounts_savedview_has_name",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("query__startswith", "?")), name="accounts_savedview_query"
                    ),
                    models.UniqueConstraint(
                        models.F("person"),
                        django.db.models.functions.text.Lower("name"),
                        name="accounts_savedview_own_name",
                    ),
                    models.UniqueConstraint(
                        models.F("tenant"),
                        django.db.models.functions.text.Lower("name"),
                        name="accounts_savedview_shared_name",
                    ),
                ],
            },
        ),
    ]
