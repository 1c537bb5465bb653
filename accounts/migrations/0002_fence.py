"""The fence, and rights read in one place: SQL functions, and triggers that fence every removal of a right."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations
from django.db.migrations.operations.base import Operation

FENCE_KEY = """
CREATE FUNCTION handoff_fence_key(tenant uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT ('x' || left(encode(sha256('fence:'::bytea || uuid_send(tenant)), 'hex'), 16))::bit(64)::bigint
$$;

-- In the order of their keys, so that two removals that touch the same tenants cannot block each other.
CREATE FUNCTION handoff_fence_tenants(tenants uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    fence bigint;
BEGIN
    FOR fence IN SELECT DISTINCT handoff_fence_key(t) AS k FROM unnest(tenants) AS t WHERE t IS NOT NULL ORDER BY k LOOP
        PERFORM pg_advisory_xact_lock(fence);
    END LOOP;
END
$$;
"""

RIGHTS = """
-- One truth about who may: active, an active member of the tenant, and holding the right on that object, directly or by group.
-- A superuser flag gives nothing here. VOLATILE, so that it reads with a snapshot taken after the fence, wherever it is called.
CREATE FUNCTION handoff_right_holders(tenant uuid, right_codename text, right_ctype int, right_object text)
RETURNS SETOF uuid LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT p.id FROM auth_permission p WHERE p.content_type_id = right_ctype AND p.codename = right_codename
    )
    SELECT m.user_id
      FROM accounts_membership m JOIN accounts_user u ON u.id = m.user_id
     WHERE m.tenant_id = tenant AND m.active AND u.is_active
       AND m.user_id IN (
            SELECT d.user_id FROM guardian_userobjectpermission d, held
             WHERE d.permission_id = held.id AND d.content_type_id = right_ctype AND d.object_pk = right_object
            UNION ALL
            SELECT g.user_id FROM accounts_user_groups g
              JOIN guardian_groupobjectpermission b ON b.group_id = g.group_id, held
             WHERE b.permission_id = held.id AND b.content_type_id = right_ctype AND b.object_pk = right_object);
END
$$;

-- How many distinct people of `approver_ids` may still do so now. Each send asks this. Planning takes thirty times as
-- long as running, and the planner would do it anew at every call, since it cannot know how few the ids are.
CREATE FUNCTION handoff_approvers_standing(
    tenant uuid, approver_ids uuid[], right_codename text, right_ctype int, right_object text)
RETURNS int LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN (
        SELECT count(DISTINCT u.id)
          FROM accounts_user u
          JOIN accounts_membership m ON m.user_id = u.id AND m.tenant_id = tenant AND m.active
          JOIN auth_permission p ON p.content_type_id = right_ctype AND p.codename = right_codename
         WHERE u.id = ANY (approver_ids) AND u.is_active
           AND (EXISTS (SELECT FROM guardian_userobjectpermission d
                         WHERE d.user_id = u.id AND d.permission_id = p.id
                           AND d.content_type_id = right_ctype AND d.object_pk = right_object)
             OR EXISTS (SELECT FROM accounts_user_groups g
                          JOIN guardian_groupobjectpermission b ON b.group_id = g.group_id
                         WHERE g.user_id = u.id AND b.permission_id = p.id
                           AND b.content_type_id = right_ctype AND b.object_pk = right_object)));
END
$$;
"""

# AFTER, per statement: the rows are gone but not committed; who holds a fence shared still sees them and we wait for it, who
# comes later waits for our commit. The statement's transition table gives all tenants at once, to be locked in order.
TRIGGERS = """
CREATE FUNCTION handoff_fence_persons() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM handoff_fence_tenants(array(
        SELECT m.tenant_id FROM accounts_membership m WHERE m.user_id IN (SELECT gone.user_id FROM gone)));
    RETURN NULL;
END
$$;

CREATE FUNCTION handoff_fence_groups() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM handoff_fence_tenants(array(
        SELECT m.tenant_id FROM accounts_membership m JOIN accounts_user_groups g ON g.user_id = m.user_id
         WHERE g.group_id IN (SELECT gone.group_id FROM gone)));
    RETURN NULL;
END
$$;

CREATE FUNCTION handoff_fence_members() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM handoff_fence_tenants(array(SELECT gone.tenant_id FROM gone));
    RETURN NULL;
END
$$;

CREATE FUNCTION handoff_fence_users() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM handoff_fence_tenants(array(
        SELECT m.tenant_id FROM accounts_membership m WHERE m.user_id IN (SELECT gone.id FROM gone)));
    RETURN NULL;
END
$$;

-- Each sign-in updates its user: only who was active and is no longer takes the fence.
CREATE FUNCTION handoff_fence_deactivated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM handoff_fence_tenants(array(
        SELECT m.tenant_id FROM accounts_membership m JOIN gone ON gone.id = m.user_id LEFT JOIN came ON came.id = gone.id
         WHERE gone.is_active AND came.is_active IS NOT TRUE));
    RETURN NULL;
END
$$;

CREATE FUNCTION handoff_fence_everyone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM handoff_fence_tenants(array(SELECT t.id FROM accounts_tenant t));
    RETURN NULL;
END
$$;
"""

FENCED = {
    "guardian_userobjectpermission": "handoff_fence_persons",
    "accounts_user_groups": "handoff_fence_persons",
    "guardian_groupobjectpermission": "handoff_fence_groups",
    "accounts_membership": "handoff_fence_members",
}


def _triggers() -> str:
    """The CREATE TRIGGER statements: DELETE, UPDATE and TRUNCATE of each table that rights come from."""
    made = [
        "CREATE TRIGGER handoff_fence_update AFTER UPDATE ON accounts_user REFERENCING OLD TABLE AS gone NEW TABLE AS came"
        " FOR EACH STATEMENT EXECUTE FUNCTION handoff_fence_deactivated();",
        _after("DELETE", "accounts_user", "handoff_fence_users"),
    ]
    for table, function in FENCED.items():
        made += [_after(operation, table, function) for operation in ("DELETE", "UPDATE")]
    for table in (*FENCED, "accounts_user"):
        made.append(
            f"CREATE TRIGGER handoff_fence_truncate BEFORE TRUNCATE ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION handoff_fence_everyone();"
        )
    return "\n".join(made)


def _after(operation: str, table: str, function: str) -> str:
    return (
        f"CREATE TRIGGER handoff_fence_{operation.lower()} AFTER {operation} ON {table} REFERENCING OLD TABLE AS gone"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {function}();"
    )


DROP_TRIGGERS = "\n".join(
    f"DROP TRIGGER handoff_fence_{operation} ON {table};"
    for table in (*FENCED, "accounts_user")
    for operation in ("delete", "update", "truncate")
)

APPEND_ONLY = """
CREATE FUNCTION handoff_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON accounts_rightchange
    FOR EACH STATEMENT EXECUTE FUNCTION handoff_append_only();
"""


class Migration(migrations.Migration):
    dependencies: ClassVar[list[tuple[str, str]]] = [
        ("accounts", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("guardian", "0003_remove_groupobjectpermission_guardian_gr_content_ae6aec_idx_and_more"),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.RunSQL(
            FENCE_KEY, "DROP FUNCTION handoff_fence_tenants(uuid[]); DROP FUNCTION handoff_fence_key(uuid);"
        ),
        migrations.RunSQL(
            RIGHTS,
            "DROP FUNCTION handoff_approvers_standing(uuid, uuid[], text, int, text);"
            "DROP FUNCTION handoff_right_holders(uuid, text, int, text);",
        ),
        migrations.RunSQL(
            TRIGGERS,
            "".join(
                f"DROP FUNCTION handoff_fence_{name}();"
                for name in ("persons", "groups", "members", "users", "deactivated", "everyone")
            ),
        ),
        migrations.RunSQL(_triggers(), DROP_TRIGGERS),
        migrations.RunSQL(
            APPEND_ONLY,
            "DROP TRIGGER append_only ON accounts_rightchange; DROP FUNCTION handoff_append_only();",
        ),
    ]
