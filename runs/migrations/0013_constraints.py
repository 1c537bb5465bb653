"""Constraints that are held here, by version; what became of those that runs accepted; a send asks for them afresh."""

from __future__ import annotations

from importlib import import_module

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

HELD = """
-- Another version, and a withdrawal, takes the tenant's fence, wherever it comes from: from its commit on nothing is sent
-- or decided under the version before. None follows a withdrawal.
CREATE FUNCTION handoff_statement_made() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  last record;
BEGIN
  IF NEW.version > 1 THEN
    PERFORM pg_advisory_xact_lock(handoff_fence_key(NEW.tenant_id));
  END IF;
  SELECT s.version, s.withdrawn, s.kind, s.name, s.agent_id, s.run_id INTO last FROM runs_statement s
    WHERE s.tenant_id = NEW.tenant_id AND s.ref = NEW.ref ORDER BY s.version DESC LIMIT 1;
  IF NEW.version <> coalesce(last.version, 0) + 1 OR last.withdrawn OR (NEW.version = 1 AND NEW.withdrawn) THEN
    RAISE EXCEPTION 'version % of constraint % does not follow what stands', NEW.version, NEW.ref
      USING ERRCODE = 'restrict_violation';
  ELSIF NEW.version > 1 AND (last.kind, last.name, last.agent_id, last.run_id)
      IS DISTINCT FROM (NEW.kind, NEW.name, NEW.agent_id, NEW.run_id) THEN
    RAISE EXCEPTION 'constraint % is fixed but for what it says', NEW.ref USING ERRCODE = 'restrict_violation';
  ELSIF EXISTS (SELECT 1 FROM runs_agent a WHERE a.id = NEW.agent_id AND a.tenant_id <> NEW.tenant_id)
      OR EXISTS (SELECT 1 FROM runs_run r WHERE r.id = NEW.run_id AND r.tenant_id <> NEW.tenant_id) THEN
    RAISE EXCEPTION 'constraint % is of another tenant', NEW.ref USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER fenced BEFORE INSERT ON runs_statement FOR EACH ROW EXECUTE FUNCTION handoff_statement_made();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON runs_statement
  FOR EACH STATEMENT EXECUTE FUNCTION handoff_append_only();

-- The constraints held here that a send rests on stand as they were accepted. Those of a run come by reference, with the
-- accepted version; a withdrawal is a version too.
CREATE FUNCTION handoff_guard_constraints(p_tenant uuid, p_guard jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  later record;
BEGIN
  IF p_guard->'constraints' IS NULL THEN
    RETURN NULL;
  END IF;
  SELECT s.ref, s.version, s.withdrawn INTO later FROM jsonb_each_text(p_guard->'constraints') AS c(ref, version)
    JOIN runs_statement s ON s.tenant_id = p_tenant AND s.ref = c.ref AND s.version > c.version::int LIMIT 1;
  IF FOUND THEN
    RETURN jsonb_build_object('refused', 'constraint', 'ref', later.ref, 'version', later.version,
      'withdrawn', later.withdrawn);
  END IF;
  RETURN NULL;
END $$;
"""

GUARD = import_module("runs.migrations.0012_guard_history").GUARD.replace(
    """  IF obstacle IS NULL THEN
    obstacle := handoff_guard_authority""",
    """  IF obstacle IS NULL THEN
    obstacle := handoff_guard_constraints(p_tenant, p_guard);
  END IF;
  IF obstacle IS NULL THEN
    obstacle := handoff_guard_authority""",
)

# A process of the version before gives rows without the columns that are new.
PROJECT = import_module("runs.migrations.0006_waits").PROJECT.replace(
    """SELECT * FROM jsonb_populate_recordset(NULL::runs_constraint, p_rows->'constraints')
    ON CONFLICT (run_id, number) DO NOTHING;""",
    """SELECT * FROM jsonb_populate_recordset(
      jsonb_populate_record(NULL::runs_constraint, '{"name": "", "predicate": "", "amended_version": ""}'),
      p_rows->'constraints')
    ON CONFLICT (run_id, number) DO UPDATE SET text = excluded.text, source_version = excluded.source_version,
      predicate = excluded.predicate, seq = excluded.seq, withdrawn_seq = excluded.withdrawn_seq,
      amended_version = excluded.amended_version;""",
)
BEFORE = (
    import_module("runs.migrations.0012_guard_history").GUARD
    + import_module("runs.migrations.0006_waits").PROJECT
    + "DROP FUNCTION handoff_guard_constraints(uuid, jsonb);"
    + "DROP TRIGGER append_only ON runs_statement; DROP TRIGGER fenced ON runs_statement;"
    + "DROP FUNCTION handoff_statement_made();"
)


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0006_fence_titles"),
        ("runs", "0012_guard_history"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="constraint",
            name="amended_version",
            field=models.CharField(db_default="", default="", max_length=100),
        ),
        migrations.AddField(
            model_name="constraint",
            name="name",
            field=models.CharField(db_default="", default="", max_length=100),
        ),
        migrations.AddField(
            model_name="constraint",
            name="predicate",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="constraint",
            name="withdrawn_seq",
            field=models.IntegerField(null=True),
        ),
        migrations.CreateModel(
            name="Statement",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=40)),
                ("ref", models.CharField(max_length=60)),
                ("version", models.PositiveIntegerField()),
                ("name", models.CharField(max_length=100)),
                ("text", models.TextField()),
                ("predicate", models.TextField(blank=True, default="")),
                ("withdrawn", models.BooleanField(default=False)),
                ("reason", models.TextField()),
                ("at", models.DateTimeField()),
                (
                    "agent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.agent",
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.run",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "ref", "version"), name="runs_statement_once"),
                    models.CheckConstraint(
                        condition=models.Q(("ref__regex", "^\\S+$")), name="runs_statement_ref_plain"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("name__regex", "\\S"),
                            ("reason__regex", "\\S"),
                            ("text__regex", "\\S"),
                            ("version__gte", 1),
                        ),
                        name="runs_statement_says",
                    ),
                ],
            },
        ),
        migrations.RunSQL(sql=HELD + GUARD + PROJECT, reverse_sql=BEFORE),
    ]
