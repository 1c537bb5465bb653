"""Who changed what about people and groups, sign-ins, sessions, links to set a password, and the cache of all processes."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

APPEND_ONLY = """
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON accounts_peoplechange
    FOR EACH STATEMENT EXECUTE FUNCTION handoff_append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON accounts_signin
    FOR EACH STATEMENT EXECUTE FUNCTION handoff_append_only();
"""
# The tables go with their triggers.
NOT_APPEND_ONLY = """
DROP TRIGGER append_only ON accounts_signin;
DROP TRIGGER append_only ON accounts_peoplechange;
"""

# As Django's `createcachetable` makes it. What is lost with a crash is asked for again.
CACHE = """
CREATE UNLOGGED TABLE accounts_cache (
    cache_key varchar(255) NOT NULL PRIMARY KEY,
    value text NOT NULL,
    expires timestamp with time zone NOT NULL
);
CREATE INDEX accounts_cache_expires ON accounts_cache (expires);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_chain"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="second_factor",
            field=models.BooleanField(default=False),
        ),
        migrations.CreateModel(
            name="OpenSession",
            fields=[
                ("session_key", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("began_at", models.DateTimeField()),
                ("ip", models.GenericIPAddressField(null=True)),
                ("agent", models.CharField(blank=True, max_length=200)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="open_sessions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="PasswordLink",
            fields=[
                ("token_hash", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("made_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="PeopleChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("action", models.CharField(max_length=40)),
                ("detail", models.JSONField(default=dict)),
                ("at", models.DateTimeField()),
                (
                    "actor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
            ],
            options={
                "permissions": (("manage_organisations", "manage_organisations"),),
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["tenant", "-at"], name="accounts_peoplechange_at"),
                    models.Index(fields=["person", "-at"], name="accounts_peoplechange_person"),
                ],
            },
        ),
        migrations.CreateModel(
            name="SignIn",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("outcome", models.CharField(max_length=20)),
                ("method", models.CharField(max_length=100)),
                ("at", models.DateTimeField()),
                ("ip", models.GenericIPAddressField(null=True)),
                ("request_id", models.CharField(blank=True, max_length=64)),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["person", "-at"], name="accounts_signin_person"),
                    models.Index(fields=["-at"], name="accounts_signin_at"),
                ],
            },
        ),
        migrations.RunSQL(APPEND_ONLY, NOT_APPEND_ONLY),
        migrations.RunSQL(CACHE, "DROP TABLE accounts_cache"),
    ]
