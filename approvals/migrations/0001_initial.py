import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Request",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("subject", models.CharField(max_length=200)),
                ("digest", models.CharField(max_length=200)),
                ("conditions", models.TextField()),
                ("conditions_digest", models.CharField(max_length=200)),
                ("policy_version", models.CharField(max_length=100)),
                ("codename", models.CharField(max_length=100)),
                ("object_pk", models.CharField(max_length=255)),
                ("needed", models.PositiveSmallIntegerField()),
                ("excluded", models.JSONField(default=dict)),
                ("opened_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Waiting for approval"),
                            ("valid", "Valid"),
                            ("consumed", "Used"),
                            ("voided", "No longer valid"),
                            ("expired", "Expired"),
                            ("rejected", "Rejected"),
                            ("changes_asked", "Changes asked for"),
                            ("taken_back", "Taken back"),
                        ],
                        max_length=20,
                    ),
                ),
                ("closed_at", models.DateTimeField(null=True)),
                ("cause", models.JSONField(null=True)),
                (
                    "object_type",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="contenttypes.contenttype",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="accounts.tenant"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Decision",
            fields=[
                ("submission", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("approve", "Approve"),
                            ("reject", "Reject"),
                            ("ask", "Ask for changes"),
                            ("take_back", "Take back"),
                        ],
                        max_length=20,
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                ("at", models.DateTimeField()),
                ("digest", models.CharField(max_length=200)),
                ("conditions_digest", models.CharField(max_length=200)),
                ("needed", models.BooleanField()),
                (
                    "state_after",
                    models.CharField(
                        choices=[
                            ("pending", "Waiting for approval"),
                            ("valid", "Valid"),
                            ("consumed", "Used"),
                            ("voided", "No longer valid"),
                            ("expired", "Expired"),
                            ("rejected", "Rejected"),
                            ("changes_asked", "Changes asked for"),
                            ("taken_back", "Taken back"),
                        ],
                        max_length=20,
                    ),
                ),
                ("approvals_after", models.PositiveSmallIntegerField()),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="accounts.tenant"
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decisions",
                        to="approvals.request",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("action", models.CharField(max_length=60)),
                ("subject", models.CharField(max_length=200)),
                ("seen", models.CharField(blank=True, max_length=200)),
                ("refusal", models.CharField(max_length=60)),
                ("detail", models.JSONField(default=dict)),
                ("reason", models.TextField(blank=True)),
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
                "indexes": [
                    models.Index(fields=["tenant", "-at"], name="approvals_attempt_at"),
                    models.Index(fields=["subject"], name="approvals_attempt_subject"),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(fields=["tenant", "subject"], name="approvals_request_subject"),
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(
                condition=models.Q(("state__in", ["pending", "valid"])),
                fields=["expires_at"],
                name="approvals_request_expiry",
            ),
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(
                condition=models.Q(("state", "pending")),
                fields=["tenant", "expires_at"],
                name="approvals_request_pending",
            ),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["pending", "valid"])),
                fields=("tenant", "subject"),
                name="approvals_one_open_request",
            ),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "pending",
                            "valid",
                            "consumed",
                            "voided",
                            "expired",
                            "rejected",
                            "changes_asked",
                            "taken_back",
                        ],
                    )
                ),
                name="approvals_request_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("closed_at__isnull", True), ("state__in", ["pending", "valid"])),
                    models.Q(
                        models.Q(("state__in", ["pending", "valid"]), _negated=True),
                        ("closed_at__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="approvals_request_closed_at",
            ),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "voided"), _negated=True), ("cause__isnull", False), _connector="OR"
                ),
                name="approvals_request_voided_has_cause",
            ),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(
                condition=models.Q(("expires_at__gt", models.F("opened_at"))),
                name="approvals_request_expires_later",
            ),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(
                condition=models.Q(("subject__regex", "^\\S+$")), name="approvals_request_subject_plain"
            ),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(
                condition=models.Q(("digest__regex", "^\\S+$")), name="approvals_request_digest_plain"
            ),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(fields=["tenant", "-at"], name="approvals_decision_at"),
        ),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.UniqueConstraint(
                condition=models.Q(("verdict", "approve")),
                fields=("request", "person"),
                name="approvals_one_approval_per_person",
            ),
        ),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.CheckConstraint(
                condition=models.Q(("verdict__in", ["approve", "reject", "ask", "take_back"])),
                name="approvals_decision_verdict",
            ),
        ),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state_after__in",
                        [
                            "pending",
                            "valid",
                            "consumed",
                            "voided",
                            "expired",
                            "rejected",
                            "changes_asked",
                            "taken_back",
                        ],
                    )
                ),
                name="approvals_decision_state_after",
            ),
        ),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("verdict__in", ["reject", "ask"]), _negated=True),
                    ("reason__regex", "\\S"),
                    _connector="OR",
                ),
                name="approvals_decision_has_reason",
            ),
        ),
    ]
