"""The guard of a send looks whether the database is still the one, and on the timeline, of the run's latest lease."""

from __future__ import annotations

from importlib import import_module

from django.db import migrations

HISTORY = """
-- A worker that lived through a restore of the database holds a lease of before it: it must not send on that.
CREATE FUNCTION handoff_guard_history(p_run text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  held text;
BEGIN
  SELECT c.history INTO held FROM runs_claim c WHERE c.run_id = p_run ORDER BY c.token DESC LIMIT 1;
  IF held <> handoff_history() THEN
    RETURN jsonb_build_object('refused', 'history', 'from', held, 'to', handoff_history());
  END IF;
  RETURN NULL;
END $$;
"""

GUARD = """
CREATE OR REPLACE FUNCTION handoff_guard(p_tenant uuid, p_run text, p_guard jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  obstacle jsonb;
BEGIN
  obstacle := handoff_guard_history(p_run);
  IF obstacle IS NULL THEN
    obstacle := handoff_guard_approval(p_tenant, p_guard);
  END IF;
  IF obstacle IS NULL THEN
    obstacle := handoff_guard_authority(p_tenant, p_guard);
  END IF;
  IF obstacle IS NULL THEN
    obstacle := handoff_guard_holder(p_tenant, p_run, p_guard);
  END IF;
  RETURN obstacle;
END $$;
"""
BEFORE = (
    import_module("runs.migrations.0007_guard_parts").GUARD + "DROP FUNCTION handoff_guard_history(text);"
)


class Migration(migrations.Migration):
    dependencies = [("runs", "0011_origin")]

    operations = [migrations.RunSQL(sql=HISTORY + GUARD, reverse_sql=BEFORE)]
