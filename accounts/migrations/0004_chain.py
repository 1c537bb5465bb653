"""Rights count where they are held and for what belongs to that: on a tenant for all of it, on an agent for its runs."""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar

from django.db import migrations
from django.db.migrations.operations.base import Operation

PLACES = """
-- Where a right on an object may be held: on the object itself, and on the tenant that it belongs to. What lies between,
-- as the agent of a run, is added by the application that knows it. STABLE, so that it becomes part of the query that
-- calls it and reads with that one's snapshot.
CREATE FUNCTION handoff_places(p_tenant uuid, p_type int, p_object text) RETURNS TABLE (type_id int, object_pk text)
LANGUAGE sql STABLE AS $$
    SELECT p_type, p_object
    UNION ALL
    SELECT c.id, p_tenant::text FROM django_content_type c WHERE c.app_label = 'accounts' AND c.model = 'tenant'
$$;

-- The rights of which each is enough for what this one permits: who may do something with a run may see it.
CREATE FUNCTION handoff_rights_giving(p_right text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_right = 'view_runs' THEN ARRAY['view_runs', 'operate_runs', 'reconcile_effects', 'attest_effects',
        'approve_plans', 'revise_goals', 'revoke_constraints', 'cancel_runs', 'restart_runs', 'rereduce_runs']
        ELSE ARRAY[p_right] END
$$;
"""

RIGHTS = """
CREATE OR REPLACE FUNCTION handoff_right_holders(tenant uuid, right_codename text, right_ctype int, right_object text)
RETURNS SETOF uuid LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT p.id, o.object_pk FROM handoff_places(tenant, right_ctype, right_object) o
          JOIN auth_permission p ON p.content_type_id = o.type_id AND p.codename = ANY (handoff_rights_giving(right_codename))
    )
    SELECT m.user_id
      FROM accounts_membership m JOIN accounts_user u ON u.id = m.user_id
     WHERE m.tenant_id = tenant AND m.active AND u.is_active
       AND m.user_id IN (
            SELECT d.user_id FROM guardian_userobjectpermission d, held
             WHERE d.permission_id = held.id AND d.object_pk = held.object_pk
            UNION ALL
            SELECT g.user_id FROM accounts_user_groups g
              JOIN guardian_groupobjectpermission b ON b.group_id = g.group_id, held
             WHERE b.permission_id = held.id AND b.object_pk = held.object_pk);
END
$$;

CREATE OR REPLACE FUNCTION handoff_approvers_standing(
    tenant uuid, approver_ids uuid[], right_codename text, right_ctype int, right_object text)
RETURNS int LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    enough text[] := handoff_rights_giving(right_codename);
    permission_ids int[];
    places text[];
    person uuid;
    standing int := 0;
BEGIN
    SELECT array_agg(p.id), array_agg(o.object_pk) INTO permission_ids, places
      FROM handoff_places(tenant, right_ctype, right_object) o
      JOIN auth_permission p ON p.content_type_id = o.type_id AND p.codename = ANY (enough);
    -- One person at a time: each look is by key, whatever the planner believes of the tables' sizes.
    FOR person IN SELECT DISTINCT id FROM unnest(approver_ids) AS id LOOP
        IF EXISTS (SELECT FROM accounts_membership m WHERE m.user_id = person AND m.tenant_id = tenant AND m.active)
           AND EXISTS (SELECT FROM accounts_user u WHERE u.id = person AND u.is_active)
           AND (EXISTS (SELECT FROM guardian_userobjectpermission d
                         WHERE d.user_id = person AND d.permission_id = ANY (permission_ids)
                           AND d.object_pk = ANY (places)
                           AND (d.permission_id, d.object_pk) IN (SELECT * FROM unnest(permission_ids, places)))
             OR EXISTS (SELECT FROM accounts_user_groups g
                          JOIN guardian_groupobjectpermission b ON b.group_id = g.group_id
                         WHERE g.user_id = person AND b.permission_id = ANY (permission_ids)
                           AND b.object_pk = ANY (places)
                           AND (b.permission_id, b.object_pk) IN (SELECT * FROM unnest(permission_ids, places)))) THEN
            standing := standing + 1;
        END IF;
    END LOOP;
    RETURN standing;
END
$$;
"""

BEFORE = import_module("accounts.migrations.0002_fence").RIGHTS.replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
)
DROP = "DROP FUNCTION handoff_places(uuid, int, text); DROP FUNCTION handoff_rights_giving(text);"

ON_TENANT = (
    ("view_runs", "view_runs"),
    ("see_values", "see_values"),
    ("start_runs", "start_runs"),
    ("operate_runs", "operate_runs"),
    ("reconcile_effects", "reconcile_effects"),
    ("attest_effects", "attest_effects"),
    ("approve_plans", "approve_plans"),
    ("revise_goals", "revise_goals"),
    ("revoke_constraints", "revoke_constraints"),
    ("cancel_runs", "cancel_runs"),
    ("restart_runs", "restart_runs"),
    ("rereduce_runs", "rereduce_runs"),
    ("manage_policies", "manage_policies"),
    ("manage_people", "manage_people"),
    ("see_audit", "see_audit"),
)


class Migration(migrations.Migration):
    dependencies: ClassVar[list[tuple[str, str]]] = [("accounts", "0003_tenant_group")]

    operations: ClassVar[list[Operation]] = [
        migrations.RunSQL(PLACES, DROP),
        migrations.RunSQL(RIGHTS, BEFORE),
        migrations.AlterModelOptions("tenant", {"default_permissions": (), "permissions": ON_TENANT}),
    ]
