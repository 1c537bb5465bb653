"""Policies name groups by title: another title, like a group that is deleted, is fenced as leaving a group is."""

from __future__ import annotations

from django.db import migrations

FENCED = """
CREATE TRIGGER handoff_fence_update AFTER UPDATE ON accounts_tenantgroup REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION handoff_fence_members();
CREATE TRIGGER handoff_fence_delete AFTER DELETE ON accounts_tenantgroup REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION handoff_fence_members();
CREATE TRIGGER handoff_fence_truncate BEFORE TRUNCATE ON accounts_tenantgroup
    FOR EACH STATEMENT EXECUTE FUNCTION handoff_fence_everyone();
"""
UNFENCED = """
DROP TRIGGER handoff_fence_update ON accounts_tenantgroup;
DROP TRIGGER handoff_fence_delete ON accounts_tenantgroup;
DROP TRIGGER handoff_fence_truncate ON accounts_tenantgroup;
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_people")]

    operations = [migrations.RunSQL(FENCED, UNFENCED)]
