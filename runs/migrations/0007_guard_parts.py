"""The guard of a send in parts, each of one purpose: approval, authority, and who else holds the operation."""

from __future__ import annotations

from importlib import import_module

from django.db import migrations

APPROVAL = """
-- The approval that a send rests on: valid, of this digest, in time, and given by enough people who still may.
CREATE FUNCTION handoff_guard_approval(p_tenant uuid, p_guard jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  p_request uuid := p_guard->>'request';
  rests record;
BEGIN
  -- Plain statements of one purpose each: PostgreSQL keeps their plans.
  IF p_request IS NULL THEN
    RETURN NULL;
  END IF;
  SELECT r.state, r.digest, r.needed, r.expires_at, r.codename, r.object_type_id, r.object_pk
    INTO rests FROM approvals_request r WHERE r.id = p_request;
  IF rests.state IS DISTINCT FROM 'valid' OR rests.digest <> p_guard->>'digest' THEN
    RETURN jsonb_build_object('refused', 'approval', 'state', rests.state);
  ELSIF rests.expires_at <= handoff_now() THEN
    RETURN jsonb_build_object('refused', 'expired');
  ELSIF handoff_approvers_standing(p_tenant, ARRAY(SELECT d.person_id FROM approvals_decision d
      WHERE d.request_id = p_request AND d.verdict = 'approve' AND d.needed),
      rests.codename, rests.object_type_id, rests.object_pk) < rests.needed THEN
    RETURN jsonb_build_object('refused', 'approvers');
  END IF;
  RETURN NULL;
END $$;
"""

AUTHORITY = """
-- The authority that a send rests on: its principal is active, and of the tenant.
CREATE FUNCTION handoff_guard_authority(p_tenant uuid, p_guard jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  p_principal uuid := p_guard->>'principal';
BEGIN
  IF NOT EXISTS (SELECT 1 FROM accounts_user u JOIN accounts_membership m ON m.user_id = u.id
      WHERE u.id = p_principal AND u.is_active AND m.tenant_id = p_tenant AND m.active) THEN
    RETURN jsonb_build_object('refused', 'authority');
  END IF;
  RETURN NULL;
END $$;
"""

HOLDER = """
-- Whose effect holds the operation id, in another run; NULL where none does. Takes the operation's lock first.
CREATE FUNCTION handoff_guard_holder(p_tenant uuid, p_run text, p_guard jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  p_system text := p_guard->>'system';
  p_operation text := p_guard->>'operation_id';
  p_lineage text := p_guard->>'lineage';
  p_repeatable boolean := coalesce((p_guard->>'repeatable')::boolean, false);
  held record;
  intent json;
  taken text;
BEGIN
  taken := pg_advisory_xact_lock(hashtextextended(p_tenant::text || ' ' || p_system || ' ' || p_operation, 0));
  SELECT e.run_id, e.number, e.status, e.lineage = p_lineage AS related, e.arguments_digest, e.reference, e.intent_seq
    INTO held FROM runs_effect e
    WHERE e.tenant_id = p_tenant AND e.system = p_system AND e.operation_id = p_operation
      AND e.status IN ('in_flight', 'unknown', 'confirmed') AND e.run_id <> p_run
      AND (e.lineage = p_lineage OR NOT p_repeatable)
    ORDER BY e.lineage = p_lineage DESC LIMIT 1;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  -- As json, which leaves an escaped NUL alone; jsonb refuses it.
  IF held.related THEN
    SELECT v.body::json INTO intent FROM runs_event v WHERE v.run_id = held.run_id AND v.seq = held.intent_seq;
  END IF;
  RETURN jsonb_build_object('refused', 'occupied', 'operation_id', p_operation, 'run', held.run_id,
    'effect', held.number, 'status', held.status, 'in_lineage', held.related, 'arguments_digest', held.arguments_digest,
    'reference', held.reference, 'account', intent->>'account', 'arguments', (intent->'arguments')::text);
END $$;
"""

GUARD = """
CREATE OR REPLACE FUNCTION handoff_guard(p_tenant uuid, p_run text, p_guard jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  obstacle jsonb;
BEGIN
  obstacle := handoff_guard_approval(p_tenant, p_guard);
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
    import_module("runs.migrations.0004_lineage").GUARD
    + "DROP FUNCTION handoff_guard_approval(uuid, jsonb); DROP FUNCTION handoff_guard_authority(uuid, jsonb);"
    + "DROP FUNCTION handoff_guard_holder(uuid, text, jsonb);"
)


class Migration(migrations.Migration):
    dependencies = [("runs", "0006_waits")]

    operations = [migrations.RunSQL(sql=APPROVAL + AUTHORITY + HOLDER + GUARD, reverse_sql=BEFORE)]
