"""A policy can leave out members of another organisation: who joins one is fenced, wherever they belong, as who leaves."""

from __future__ import annotations

from django.db import migrations

FENCED = """
-- An approval by somebody who belongs elsewhere too may not count: it is not relied on while that person joins.
CREATE FUNCTION handoff_fence_joined() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM handoff_fence_tenants(array(
        SELECT m.tenant_id FROM accounts_membership m JOIN came ON came.user_id = m.user_id
         WHERE came.active AND m.active AND m.tenant_id <> came.tenant_id));
    RETURN NULL;
END
$$;
CREATE TRIGGER handoff_fence_joined AFTER INSERT ON accounts_membership REFERENCING NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION handoff_fence_joined();
CREATE TRIGGER handoff_fence_joined_again AFTER UPDATE ON accounts_membership REFERENCING NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION handoff_fence_joined();
"""
UNFENCED = """
DROP TRIGGER handoff_fence_joined ON accounts_membership;
DROP TRIGGER handoff_fence_joined_again ON accounts_membership;
DROP FUNCTION handoff_fence_joined();
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0007_preferences")]

    operations = [migrations.RunSQL(FENCED, UNFENCED)]
