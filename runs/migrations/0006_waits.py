"""Waits, child runs and compensation: tables, states and statuses, and the function that projects them."""

from __future__ import annotations

from importlib import import_module

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

BEFORE = import_module("runs.migrations.0002_ledger").PROJECT.replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
)
PROJECT = """
-- Rows of the projections that a step does not move each time.
CREATE OR REPLACE FUNCTION handoff_project(p_rows jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO runs_planversion SELECT * FROM jsonb_populate_recordset(NULL::runs_planversion, p_rows->'plans')
    ON CONFLICT (run_id, version) DO UPDATE SET by_policy = excluded.by_policy, voided_seq = excluded.voided_seq;
  INSERT INTO runs_constraint SELECT * FROM jsonb_populate_recordset(NULL::runs_constraint, p_rows->'constraints')
    ON CONFLICT (run_id, number) DO NOTHING;
  INSERT INTO runs_obligation SELECT * FROM jsonb_populate_recordset(NULL::runs_obligation, p_rows->'obligations')
    ON CONFLICT (run_id, number) DO UPDATE
    SET discharged_seq = excluded.discharged_seq, handed_over = excluded.handed_over;
  INSERT INTO runs_observation SELECT * FROM jsonb_populate_recordset(NULL::runs_observation, p_rows->'observations')
    ON CONFLICT (run_id, number) DO UPDATE SET version = excluded.version, resource = excluded.resource,
      observed_at = excluded.observed_at, expires_at = excluded.expires_at, seq = excluded.seq;
  INSERT INTO runs_wait SELECT * FROM jsonb_populate_recordset(NULL::runs_wait, p_rows->'waits')
    ON CONFLICT (run_id, step) DO UPDATE SET kind = excluded.kind, signal = excluded.signal,
      began_seq = excluded.began_seq, until = excluded.until, ended_seq = excluded.ended_seq;
  INSERT INTO runs_child SELECT * FROM jsonb_populate_recordset(NULL::runs_child, p_rows->'children')
    ON CONFLICT (run_id, seq) DO UPDATE SET child_id = excluded.child_id, ended_seq = excluded.ended_seq;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_fence"),
        ("runs", "0005_artifacts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Child",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id", "seq", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="children",
                        to="runs.run",
                    ),
                ),
                ("seq", models.IntegerField()),
                ("name", models.CharField(max_length=100)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
                ("step", models.CharField(max_length=200)),
                (
                    "child",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.run",
                    ),
                ),
                ("ended_seq", models.IntegerField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Wait",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id", "step", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="waits",
                        to="runs.run",
                    ),
                ),
                ("step", models.CharField(max_length=200)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
                ("kind", models.CharField(max_length=10)),
                ("signal", models.CharField(max_length=100)),
                ("began_seq", models.IntegerField()),
                ("until", models.DateTimeField(null=True)),
                ("ended_seq", models.IntegerField(null=True)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="effect",
            name="runs_effect_status",
        ),
        migrations.RemoveConstraint(
            model_name="run",
            name="runs_run_state",
        ),
        migrations.RemoveConstraint(
            model_name="run",
            name="runs_run_wakes",
        ),
        migrations.AddField(
            model_name="effect",
            name="undoes_effect",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="effect",
            name="undoes_run",
            field=models.CharField(db_default="", default="", max_length=32),
        ),
        migrations.AddField(
            model_name="run",
            name="parent",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="started",
                to="runs.run",
            ),
        ),
        migrations.AddIndex(
            model_name="effect",
            index=models.Index(
                condition=models.Q(("undoes_run", ""), _negated=True),
                fields=["undoes_run"],
                name="runs_effect_undoes",
            ),
        ),
        migrations.AddConstraint(
            model_name="effect",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("status__in", ["in_flight", "unknown", "confirmed", "not_executed", "compensated"])
                ),
                name="runs_effect_status",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "planning",
                            "waiting_approval",
                            "approved",
                            "executing",
                            "waiting",
                            "unknown",
                            "needs_human",
                            "cancelling",
                            "compensating",
                            "succeeded",
                            "cancelled",
                            "restarted",
                        ],
                    )
                ),
                name="runs_run_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        (
                            "state__in",
                            ["approved", "cancelling", "compensating", "executing", "planning", "unknown"],
                        ),
                        _negated=True,
                    ),
                    ("wake_at__isnull", False),
                    _connector="OR",
                ),
                name="runs_run_wakes",
            ),
        ),
        migrations.AddIndex(
            model_name="child",
            index=models.Index(
                condition=models.Q(("ended_seq__isnull", True)), fields=["child"], name="runs_child_open"
            ),
        ),
        migrations.AddConstraint(
            model_name="child",
            constraint=models.UniqueConstraint(fields=("child",), name="runs_child_once"),
        ),
        migrations.AddConstraint(
            model_name="wait",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("kind__in", ["timer", "signal", "children"]),
                    models.Q(
                        models.Q(("kind", "timer"), _negated=True), ("until__isnull", False), _connector="OR"
                    ),
                ),
                name="runs_wait_ends",
            ),
        ),
        migrations.RunSQL(sql=PROJECT, reverse_sql=BEFORE),
    ]
