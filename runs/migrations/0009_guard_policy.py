"""The guard of a send looks at the policy in force, and at the groups that those who approved are in."""

from __future__ import annotations

from importlib import import_module

from django.db import migrations

APPROVAL = """
-- What a send rests on: the policy that its plan was judged by is the one in force, and the approval is valid, of this
-- digest, in time, and given by enough people who still may, from the groups that were asked for.
CREATE OR REPLACE FUNCTION handoff_guard_approval(p_tenant uuid, p_guard jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  p_request uuid := p_guard->>'request';
  held text;
  rests record;
  approvers uuid[];
  quorum jsonb;
BEGIN
  -- Plain statements of one purpose each: PostgreSQL keeps their plans.
  held := coalesce(handoff_policy_in_force(p_tenant, p_guard->>'agent'), p_guard->>'own_policy');
  IF held <> p_guard->>'policy' THEN
    RETURN jsonb_build_object('refused', 'policy', 'from', p_guard->>'policy', 'to', held);
  END IF;
  IF p_request IS NULL THEN
    RETURN NULL;
  END IF;
  SELECT r.state, r.digest, r.needed, r.expires_at, r.codename, r.object_type_id, r.object_pk, r.quorums, r.not_by
    INTO rests FROM approvals_request r WHERE r.id = p_request;
  IF rests.state IS DISTINCT FROM 'valid' OR rests.digest <> p_guard->>'digest' THEN
    RETURN jsonb_build_object('refused', 'approval', 'state', rests.state);
  ELSIF rests.expires_at <= handoff_now() THEN
    RETURN jsonb_build_object('refused', 'expired');
  END IF;
  approvers := ARRAY(SELECT d.person_id FROM approvals_decision d
    WHERE d.request_id = p_request AND d.verdict = 'approve' AND d.needed);
  IF rests.not_by ? 'other_tenant' THEN
    approvers := handoff_of_this_tenant_alone(p_tenant, approvers);
  END IF;
  IF handoff_approvers_standing(p_tenant, approvers, rests.codename, rests.object_type_id, rests.object_pk)
      < rests.needed THEN
    RETURN jsonb_build_object('refused', 'approvers');
  END IF;
  FOR quorum IN SELECT q FROM jsonb_array_elements(rests.quorums) AS q LOOP
    IF handoff_approvers_standing(p_tenant, handoff_in_groups(p_tenant, approvers, quorum->'groups'),
        rests.codename, rests.object_type_id, rests.object_pk) < (quorum->>'needed')::int THEN
      RETURN jsonb_build_object('refused', 'approvers', 'quorum', quorum);
    END IF;
  END LOOP;
  RETURN NULL;
END $$;
"""
BEFORE = import_module("runs.migrations.0007_guard_parts").APPROVAL.replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
)


class Migration(migrations.Migration):
    dependencies = [("runs", "0008_chain"), ("approvals", "0003_policies")]

    operations = [migrations.RunSQL(sql=APPROVAL, reverse_sql=BEFORE)]
