"""The clock, the append function and the triggers that keep the log append-only."""

from __future__ import annotations

from django.db import migrations

CLOCK = """
-- Which history of which cluster this is: another one may have lost events that this program acted on.
CREATE FUNCTION handoff_history() RETURNS text LANGUAGE sql STABLE AS $$
  SELECT system_identifier || '/' || timeline_id || '/' || (SELECT count(*) FROM runs_restore)
    FROM pg_control_system(), pg_control_checkpoint()
$$;

-- The one clock. Only a database whose name begins with test_ can be given an offset, so that every process of a
-- test sees the same moved time.
CREATE FUNCTION handoff_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT now() + CASE WHEN current_database() LIKE 'test\\_%'
    THEN coalesce(nullif(current_setting('handoff.clock_offset', true), '')::interval, interval '0')
    ELSE interval '0' END
$$;
"""

GUARD = """
-- What a send must find, read after the fence: the approval it rests on, its approvers' rights, the principal, and
-- nobody else holding the operation id. NULL where all is well, else what stands in the way.
CREATE FUNCTION handoff_guard(p_tenant uuid, p_run text, p_guard jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  p_system text := p_guard->>'system';
  p_operation text := p_guard->>'operation_id';
  p_lineage text := p_guard->>'lineage';
  p_principal uuid := p_guard->>'principal';
  p_request uuid := p_guard->>'request';
  held record;
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
  SELECT run_id, number, status INTO held FROM runs_effect
    WHERE tenant_id = p_tenant AND system = p_system AND operation_id = p_operation
      AND status IN ('in_flight', 'unknown', 'confirmed') AND lineage <> p_lineage LIMIT 1;
  IF FOUND THEN
    RETURN jsonb_build_object('refused', 'occupied', 'run', held.run_id, 'effect', held.number, 'status', held.status);
  END IF;
  RETURN NULL;
END $$;
"""

PROJECT = """
-- Rows of the projections that a step does not move each time.
CREATE FUNCTION handoff_project(p_rows jsonb) RETURNS void LANGUAGE plpgsql AS $$
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
END $$;
"""

APPEND = """
-- The only writer of events and of runs' projections. It guards, chains and inserts what `evolve` produced; the rules
-- are not here. NULL where it was written, else `refused` with `detail`, and then nothing was written:
-- missing, token, seq, clock, or what the guard found. Locks: fence, run, operation id.
-- p_row holds the run's columns where others than seq, head, at and wake_at moved. Each of p_effects is a whole row where
-- its intent is among these events, else the columns that moved.
-- Locks are taken by assignment: it costs a tenth of a statement, and what follows still has a snapshot of its own.
CREATE FUNCTION handoff_append(
  p_run text, p_tenant uuid, p_expected int, p_token bigint, p_at timestamptz,
  p_actor_kind text, p_actor_id text, p_actor_name text,
  p_types text[], p_versions int[], p_bodies text[], p_states text[],
  p_wake timestamptz, p_row jsonb, p_effects jsonb, p_rest jsonb, p_lease interval, p_guard jsonb
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  run record;
  obstacle jsonb;
  moved runs_run;
  effect runs_effect;
  previous bytea;
  next bytea;
  digest bytea;
  before text;
  fence text;
BEGIN
  fence := pg_advisory_xact_lock_shared(handoff_fence_key(p_tenant));
  SELECT r.seq, r.head, r.at, r.state, r.lease_token INTO run
    FROM runs_run r WHERE r.id = p_run AND r.tenant_id = p_tenant FOR UPDATE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('refused', 'missing');
  ELSIF run.lease_token <> p_token THEN
    RETURN jsonb_build_object('refused', 'token', 'detail', run.lease_token);
  ELSIF run.seq <> p_expected THEN
    RETURN jsonb_build_object('refused', 'seq', 'detail', run.seq);
  ELSIF p_at < run.at OR abs(extract(epoch FROM p_at - greatest(handoff_now(), run.at))) > 1 THEN
    RETURN jsonb_build_object('refused', 'clock', 'detail', greatest(handoff_now(), run.at));
  END IF;
  IF p_guard IS NOT NULL THEN
    obstacle := handoff_guard(p_tenant, p_run, p_guard);
    IF obstacle IS NOT NULL THEN
      RETURN jsonb_build_object('refused', obstacle->>'refused', 'detail', obstacle);
    END IF;
  END IF;
  previous := run.head;
  before := CASE WHEN run.seq = 0 THEN '' ELSE run.state END;
  FOR i IN 1 .. array_length(p_types, 1) LOOP
    digest := sha256(convert_to(p_bodies[i], 'UTF8'));
    next := sha256(convert_to(concat_ws(E'\\n', encode(previous, 'hex'), p_run, run.seq + i, p_types[i], p_versions[i],
      (extract(epoch FROM p_at) * 1000000)::bigint, before, p_states[i], encode(digest, 'hex'),
      p_actor_kind, p_actor_id, p_actor_name), 'UTF8'));
    INSERT INTO runs_event (run_id, seq, tenant_id, type, version, at, actor_kind, actor_id, actor_name,
        state_before, state_after, body, body_digest, previous, hash)
      VALUES (p_run, run.seq + i, p_tenant, p_types[i], p_versions[i], p_at, p_actor_kind, p_actor_id, p_actor_name,
        before, p_states[i], p_bodies[i], digest, previous, next);
    previous := next;
    before := p_states[i];
  END LOOP;
  IF p_row IS NULL THEN
    UPDATE runs_run r SET seq = run.seq + array_length(p_types, 1), head = previous, at = p_at, claims = 0,
        wake_at = p_wake, lease_until = CASE WHEN p_lease IS NULL OR r.lease_until IS NULL THEN r.lease_until
          ELSE greatest(r.lease_until, handoff_now() + p_lease) END
      WHERE r.id = p_run;
  ELSE
    moved := jsonb_populate_record(NULL::runs_run, p_row);
    UPDATE runs_run r SET seq = run.seq + array_length(p_types, 1), head = previous, at = p_at, claims = 0,
        wake_at = p_wake, lease_until = CASE WHEN p_lease IS NULL OR r.lease_until IS NULL THEN r.lease_until
          ELSE greatest(r.lease_until, handoff_now() + p_lease) END,
        state = moved.state, direction = moved.direction, before = moved.before, since = moved.since,
        reasons = moved.reasons, cancel_requested = moved.cancel_requested, goal = moved.goal,
        goal_version = moved.goal_version, plan_version = moved.plan_version
      WHERE r.id = p_run;
  END IF;
  FOR i IN 0 .. coalesce(jsonb_array_length(p_effects), 0) - 1 LOOP
    effect := jsonb_populate_record(NULL::runs_effect, p_effects->i);
    IF effect.intent_seq > p_expected THEN
      INSERT INTO runs_effect VALUES (effect.*);
    ELSE
      UPDATE runs_effect SET status = effect.status, send_seq = effect.send_seq, receipt_seq = effect.receipt_seq,
          reference = effect.reference
        WHERE run_id = p_run AND number = effect.number;
    END IF;
  END LOOP;
  IF p_rest IS NOT NULL THEN
    PERFORM handoff_project(p_rest);
  END IF;
  RETURN NULL;
END $$;
"""

TRIGGERS = """
-- The one change that an event allows: its body is erased, and nothing else.
CREATE FUNCTION handoff_only_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  kept runs_event := NEW;
BEGIN
  kept.body := OLD.body;
  IF NEW.body IS NOT NULL OR kept IS DISTINCT FROM OLD THEN
    RAISE EXCEPTION 'an event is never changed; its body can only be erased' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER runs_event_update BEFORE UPDATE ON runs_event FOR EACH ROW EXECUTE FUNCTION handoff_only_erasure();
CREATE TRIGGER runs_event_delete BEFORE DELETE ON runs_event FOR EACH ROW EXECUTE FUNCTION handoff_append_only();
CREATE TRIGGER runs_event_truncate BEFORE TRUNCATE ON runs_event EXECUTE FUNCTION handoff_append_only();
CREATE TRIGGER runs_claim_change BEFORE UPDATE OR DELETE ON runs_claim FOR EACH ROW
  EXECUTE FUNCTION handoff_append_only();
CREATE TRIGGER runs_claim_truncate BEFORE TRUNCATE ON runs_claim EXECUTE FUNCTION handoff_append_only();
CREATE TRIGGER runs_restore_change BEFORE UPDATE OR DELETE OR TRUNCATE ON runs_restore FOR EACH STATEMENT
  EXECUTE FUNCTION handoff_append_only();
CREATE TRIGGER runs_submission_change BEFORE UPDATE OR DELETE ON runs_submission FOR EACH ROW
  EXECUTE FUNCTION handoff_append_only();
CREATE TRIGGER runs_submission_truncate BEFORE TRUNCATE ON runs_submission EXECUTE FUNCTION handoff_append_only();

-- Steps update a run often and change no indexed column: leave room for heap-only updates.
ALTER TABLE runs_run SET (fillfactor = 70);
ALTER TABLE runs_effect SET (fillfactor = 70);
"""

UNDO = """
DROP TRIGGER runs_event_update ON runs_event; DROP TRIGGER runs_event_delete ON runs_event;
DROP TRIGGER runs_event_truncate ON runs_event; DROP TRIGGER runs_claim_change ON runs_claim;
DROP TRIGGER runs_claim_truncate ON runs_claim; DROP TRIGGER runs_submission_change ON runs_submission;
DROP TRIGGER runs_submission_truncate ON runs_submission;
DROP FUNCTION handoff_only_erasure();
DROP FUNCTION handoff_append(text, uuid, int, bigint, timestamptz, text, text, text, text[], int[], text[], text[],
  timestamptz, jsonb, jsonb, jsonb, interval, jsonb);
DROP FUNCTION handoff_project(jsonb); DROP FUNCTION handoff_guard(uuid, text, jsonb);
DROP FUNCTION handoff_now(); DROP FUNCTION handoff_history(); DROP TRIGGER runs_restore_change ON runs_restore;
ALTER TABLE runs_run RESET (fillfactor); ALTER TABLE runs_effect RESET (fillfactor);
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial"), ("approvals", "0002_guards"), ("accounts", "0002_fence")]

    operations = [migrations.RunSQL(sql=CLOCK + GUARD + PROJECT + APPEND + TRIGGERS, reverse_sql=UNDO)]
