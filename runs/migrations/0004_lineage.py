"""A send finds whoever else holds its operation: in other runs of its lineage always, outside it unless ids repeat."""

from __future__ import annotations

from importlib import import_module

from django.db import migrations

GUARD = """
-- What a send must find, read after the fence: the approval it rests on, its approvers' rights, the principal, and
-- no other run holding the operation id. NULL where all is well, else what stands in the way. A holder of the lineage
-- comes first, and with all that its step could be answered from.
CREATE OR REPLACE FUNCTION handoff_guard(p_tenant uuid, p_run text, p_guard jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  p_system text := p_guard->>'system';
  p_operation text := p_guard->>'operation_id';
  p_lineage text := p_guard->>'lineage';
  p_principal uuid := p_guard->>'principal';
  p_request uuid := p_guard->>'request';
  p_repeatable boolean := coalesce((p_guard->>'repeatable')::boolean, false);
  held record;
  intent json;
  rests record;
  taken text;
BEGIN
  -- Plain statements of one purpose each: PostgreSQL keeps their plans.
  IF p_request IS NOT NULL THEN
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
  END IF;
  IF NOT EXISTS (SELECT 1 FROM accounts_user u JOIN accounts_membership m ON m.user_id = u.id
      WHERE u.id = p_principal AND u.is_active AND m.tenant_id = p_tenant AND m.active) THEN
    RETURN jsonb_build_object('refused', 'authority');
  END IF;
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

#: As it was: a lineage's own holders were left to the machine and to the unique index.
BEFORE = import_module("runs.migrations.0002_ledger").GUARD.replace(
    "CREATE FUNCTION handoff_guard", "CREATE OR REPLACE FUNCTION handoff_guard"
)


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_wakes")]

    operations = [migrations.RunSQL(sql=GUARD, reverse_sql=BEFORE)]
