"""Grants, what is used of them, and what ends them; a send asks its grant afresh."""

from __future__ import annotations

import uuid
from importlib import import_module

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

AUTHORITY = """
-- The authority that a send rests on: its grant, asked afresh. `why` says what is wrong with it. Without a grant, as for
-- runs of before there were any: that the principal is active, and of the tenant. The balance is locked where the send
-- reserves: after the run and before the operation id.
CREATE OR REPLACE FUNCTION handoff_guard_authority(p_tenant uuid, p_guard jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  p_grant uuid := p_guard->>'grant';
  p_principal uuid := p_guard->>'principal';
  lent record;
  used numeric;
BEGIN
  IF p_grant IS NOT NULL THEN
    SELECT g.principal_id, g.agent_id, g.scopes, g.budget, g.session_key, g.expires_at, g.ended_at,
        CASE WHEN g.by_id IS NULL THEN g.why ELSE 'ended' END AS why
      INTO lent FROM runs_grant g WHERE g.id = p_grant AND g.tenant_id = p_tenant;
    p_principal := lent.principal_id;
  END IF;
  IF NOT EXISTS (SELECT 1 FROM accounts_user u JOIN accounts_membership m ON m.user_id = u.id
      WHERE u.id = p_principal AND u.is_active AND m.tenant_id = p_tenant AND m.active) THEN
    RETURN jsonb_build_object('refused', 'authority', 'why', 'not_member');
  ELSIF p_grant IS NULL THEN
    RETURN NULL;
  ELSIF NOT handoff_may_lend(p_tenant, p_principal, lent.agent_id) THEN
    RETURN jsonb_build_object('refused', 'authority', 'why', 'may_not_lend');
  ELSIF lent.ended_at IS NOT NULL THEN
    RETURN jsonb_build_object('refused', 'authority', 'why', lent.why);
  ELSIF lent.expires_at <= handoff_now() THEN
    RETURN jsonb_build_object('refused', 'authority', 'why', 'expired');
  ELSIF lent.session_key <> '' AND NOT EXISTS (SELECT 1 FROM django_session s
      WHERE s.session_key = lent.session_key AND s.expire_date > handoff_now()) THEN
    RETURN jsonb_build_object('refused', 'authority', 'why', 'session_closed');
  ELSIF jsonb_array_length(p_guard->'scopes') > 0 AND NOT p_guard->'scopes' ?| lent.scopes::text[] THEN
    RETURN jsonb_build_object('refused', 'authority', 'why', 'out_of_scope');
  ELSIF lent.budget IS NULL OR p_guard->>'cost' IS NULL THEN
    RETURN NULL;
  END IF;
  SELECT b.used INTO used FROM runs_grantbalance b WHERE b.grant_id = p_grant FOR UPDATE;
  IF used + (p_guard->>'cost')::numeric > lent.budget THEN
    RETURN jsonb_build_object('refused', 'budget', 'left', lent.budget - used);
  END IF;
  RETURN NULL;
END $$;
"""

MAY_LEND = """
-- Whether this person may lend for an agent's runs, now.
CREATE FUNCTION handoff_may_lend(p_tenant uuid, p_person uuid, p_agent bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN handoff_approvers_standing(p_tenant, ARRAY[p_person], 'start_runs',
    (SELECT c.id FROM django_content_type c WHERE c.app_label = 'runs' AND c.model = 'agent'), p_agent::text) = 1;
END $$;
"""

BALANCE = """
-- What the effects on a grant use: in flight, unknown or confirmed, also beyond the budget. A receipt is never refused.
CREATE FUNCTION handoff_use_grant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.grant_id IS NOT NULL AND OLD.status IN ('in_flight', 'unknown', 'confirmed') THEN
    UPDATE runs_grantbalance SET used = used - OLD.cost WHERE grant_id = OLD.grant_id;
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.grant_id IS NOT NULL AND NEW.status IN ('in_flight', 'unknown', 'confirmed') THEN
    UPDATE runs_grantbalance SET used = used + NEW.cost WHERE grant_id = NEW.grant_id;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER grant_insert AFTER INSERT ON runs_effect FOR EACH ROW
  WHEN (NEW.grant_id IS NOT NULL AND NEW.cost IS NOT NULL) EXECUTE FUNCTION handoff_use_grant();
CREATE TRIGGER grant_delete AFTER DELETE ON runs_effect FOR EACH ROW
  WHEN (OLD.grant_id IS NOT NULL AND OLD.cost IS NOT NULL) EXECUTE FUNCTION handoff_use_grant();
CREATE TRIGGER grant_update AFTER UPDATE OF status, grant_id ON runs_effect FOR EACH ROW
  WHEN (NEW.cost IS NOT NULL AND (OLD.grant_id IS DISTINCT FROM NEW.grant_id
    OR (OLD.status IN ('in_flight', 'unknown', 'confirmed')) <> (NEW.status IN ('in_flight', 'unknown', 'confirmed'))))
  EXECUTE FUNCTION handoff_use_grant();
"""

FIXED = """
-- The one change that a grant allows: its end, once.
CREATE FUNCTION handoff_grant_ends() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF to_jsonb(NEW) - ARRAY['ended_at', 'by_id', 'why'] <> to_jsonb(OLD) - ARRAY['ended_at', 'by_id', 'why']
      OR OLD.ended_at IS NOT NULL OR NEW.ended_at IS NULL THEN
    RAISE EXCEPTION 'grant % is fixed: it can only be ended, once', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER grant_ends BEFORE UPDATE ON runs_grant FOR EACH ROW EXECUTE FUNCTION handoff_grant_ends();
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON runs_grant FOR EACH STATEMENT
  EXECUTE FUNCTION handoff_append_only();
"""

ENDS = """
-- Whoever loses the right to lend has lent nothing any more: what is given back later is a new permission, and needs a new
-- grant. These fire after the triggers that took the fence, which stand before them in the order of names.
CREATE FUNCTION handoff_end_lost_grants(p_people uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE runs_grant g SET ended_at = handoff_now(), why = 'may_not_lend'
    WHERE g.principal_id = ANY (p_people) AND g.ended_at IS NULL
      AND NOT handoff_may_lend(g.tenant_id, g.principal_id, g.agent_id);
END $$;

CREATE FUNCTION handoff_grants_of_people() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM handoff_end_lost_grants(ARRAY(SELECT DISTINCT gone.user_id FROM gone));
  RETURN NULL;
END $$;

CREATE FUNCTION handoff_grants_of_groups() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM handoff_end_lost_grants(ARRAY(SELECT DISTINCT u.user_id FROM accounts_user_groups u
    WHERE u.group_id IN (SELECT gone.group_id FROM gone)));
  RETURN NULL;
END $$;

CREATE FUNCTION handoff_grants_of_users() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM handoff_end_lost_grants(ARRAY(SELECT gone.id FROM gone JOIN came ON came.id = gone.id
    WHERE gone.is_active AND NOT came.is_active));
  RETURN NULL;
END $$;

-- A session that is gone, by signing out or otherwise, ends what was bound to it.
CREATE FUNCTION handoff_grants_of_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM runs_grant g JOIN gone ON gone.session_key = g.session_key
      WHERE g.session_key <> '' AND g.ended_at IS NULL) THEN
    PERFORM handoff_fence_tenants(ARRAY(SELECT g.tenant_id FROM runs_grant g JOIN gone ON gone.session_key = g.session_key
      WHERE g.session_key <> '' AND g.ended_at IS NULL));
    UPDATE runs_grant g SET ended_at = handoff_now(), why = 'session_closed'
      FROM gone WHERE gone.session_key = g.session_key AND g.session_key <> '' AND g.ended_at IS NULL;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER handoff_grants_update AFTER UPDATE ON accounts_user REFERENCING OLD TABLE AS gone NEW TABLE AS came
  FOR EACH STATEMENT EXECUTE FUNCTION handoff_grants_of_users();
CREATE TRIGGER handoff_grants_session AFTER DELETE ON django_session REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION handoff_grants_of_sessions();
"""

ENDED_BY = {
    "guardian_userobjectpermission": "handoff_grants_of_people",
    "accounts_user_groups": "handoff_grants_of_people",
    "accounts_membership": "handoff_grants_of_people",
    "guardian_groupobjectpermission": "handoff_grants_of_groups",
}
TRIGGERS = "".join(
    f"CREATE TRIGGER handoff_grants_{operation.lower()} AFTER {operation} ON {table} REFERENCING OLD TABLE AS gone"
    f" FOR EACH STATEMENT EXECUTE FUNCTION {function}();"
    for table, function in ENDED_BY.items()
    for operation in ("DELETE", "UPDATE")
)
UNDO = (
    "".join(
        f"DROP TRIGGER handoff_grants_{operation} ON {table};"
        for table in ENDED_BY
        for operation in ("delete", "update")
    )
    + """
DROP TRIGGER handoff_grants_update ON accounts_user; DROP TRIGGER handoff_grants_session ON django_session;
DROP FUNCTION handoff_grants_of_people(); DROP FUNCTION handoff_grants_of_groups();
DROP FUNCTION handoff_grants_of_users(); DROP FUNCTION handoff_grants_of_sessions();
DROP FUNCTION handoff_end_lost_grants(uuid[]); DROP FUNCTION handoff_may_lend(uuid, uuid, bigint);
DROP TRIGGER grant_ends ON runs_grant; DROP TRIGGER append_only ON runs_grant; DROP FUNCTION handoff_grant_ends();
DROP TRIGGER grant_insert ON runs_effect; DROP TRIGGER grant_delete ON runs_effect;
DROP TRIGGER grant_update ON runs_effect; DROP FUNCTION handoff_use_grant();
"""
)

_LEDGER = import_module("runs.migrations.0002_ledger").APPEND.replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
)
APPEND = (
    _LEDGER.replace(
        "goal_version = moved.goal_version, plan_version = moved.plan_version",
        "goal_version = moved.goal_version, plan_version = moved.plan_version, grant_id = moved.grant_id",
    )
    .replace("reference = effect.reference\n", "reference = effect.reference, grant_id = effect.grant_id\n")
    .replace("Locks: fence, run, operation id.", "Locks: fence, run, balance of the grant, operation id.")
)
BEFORE = _LEDGER + import_module("runs.migrations.0007_guard_parts").AUTHORITY.replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
)


class Migration(migrations.Migration):
    dependencies = [
        ("sessions", "0001_initial"),
        ("accounts", "0004_chain"),
        ("runs", "0009_guard_policy"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Grant",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100)),
                ),
                ("budget", models.DecimalField(null=True)),
                ("session_key", models.CharField(default="", max_length=40)),
                ("lent_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("why", models.TextField(default="")),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.agent"
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "principal",
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
            ],
        ),
        migrations.AddField(
            model_name="effect",
            name="cost",
            field=models.DecimalField(null=True),
        ),
        migrations.CreateModel(
            name="GrantBalance",
            fields=[
                (
                    "grant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="balance",
                        serialize=False,
                        to="runs.grant",
                    ),
                ),
                ("used", models.DecimalField(default=0)),
            ],
        ),
        migrations.AddField(
            model_name="effect",
            name="grant",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="runs.grant",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="grant",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="runs", to="runs.grant"
            ),
        ),
        migrations.AddIndex(
            model_name="grant",
            index=models.Index(
                condition=models.Q(("session_key", ""), _negated=True),
                fields=["session_key"],
                name="runs_grant_session",
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(("budget__isnull", True), ("budget__gte", 0), _connector="OR"),
                name="runs_grant_budget",
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(("expires_at__gt", models.F("lent_at"))), name="runs_grant_lasts"
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("ended_at__isnull", False), models.Q(("by__isnull", True), ("why", "")), _connector="OR"
                ),
                name="runs_grant_end",
            ),
        ),
        migrations.RunSQL(
            sql=MAY_LEND + AUTHORITY + BALANCE + FIXED + ENDS + TRIGGERS + APPEND, reverse_sql=BEFORE + UNDO
        ),
    ]
