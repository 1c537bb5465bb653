"""A right on a run may be held on the run, on its agent, or on its tenant."""

from __future__ import annotations

from importlib import import_module

from django.db import migrations

PLACES = """
CREATE OR REPLACE FUNCTION handoff_places(p_tenant uuid, p_type int, p_object text) RETURNS TABLE (type_id int, object_pk text)
LANGUAGE sql STABLE AS $$
    SELECT p_type, p_object
    UNION ALL
    SELECT c.id, r.agent_id::text FROM runs_run r, django_content_type k, django_content_type c
     WHERE r.id = p_object AND r.tenant_id = p_tenant AND k.id = p_type AND k.app_label = 'runs' AND k.model = 'run'
       AND c.app_label = 'runs' AND c.model = 'agent'
    UNION ALL
    SELECT c.id, p_tenant::text FROM django_content_type c WHERE c.app_label = 'accounts' AND c.model = 'tenant'
$$;
"""

BEFORE = (
    import_module("accounts.migrations.0004_chain")
    .PLACES.partition("-- The rights of which")[0]
    .replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
)

ON_AGENT = (
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
)
ON_RUN = tuple(held for held in ON_AGENT if held[0] not in ("start_runs", "manage_policies"))


class Migration(migrations.Migration):
    dependencies = [("runs", "0007_guard_parts"), ("accounts", "0004_chain")]

    operations = [
        migrations.RunSQL(sql=PLACES, reverse_sql=BEFORE),
        migrations.AlterModelOptions("agent", {"default_permissions": (), "permissions": ON_AGENT}),
        migrations.AlterModelOptions("run", {"default_permissions": (), "permissions": ON_RUN}),
    ]
