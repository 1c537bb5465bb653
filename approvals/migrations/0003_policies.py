"""Policies that a tenant holds for an agent: their versions, which one counts since when, and what requests ask of groups."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

HELD = """
-- What a release refers to exists, in its own tenant and for its own agent.
ALTER TABLE approvals_policyrelease ADD CONSTRAINT approvals_policyrelease_of_version
    FOREIGN KEY (tenant_id, agent, number) REFERENCES approvals_policyversion (tenant_id, agent, number);

-- A release takes the tenant's fence, wherever it comes from, and its id only then: so the greatest id is the latest
-- commit, and from that commit on nothing is sent or decided under the policy before.
CREATE FUNCTION handoff_policy_released() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(handoff_fence_key(NEW.tenant_id));
    NEW.id := nextval(pg_get_serial_sequence('approvals_policyrelease', 'id'));
    RETURN NEW;
END
$$;
CREATE TRIGGER fenced BEFORE INSERT ON approvals_policyrelease FOR EACH ROW EXECUTE FUNCTION handoff_policy_released();

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON approvals_policyrelease
    FOR EACH STATEMENT EXECUTE FUNCTION handoff_append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON approvals_policyversion
    FOR EACH STATEMENT EXECUTE FUNCTION handoff_append_only();

-- The name of the policy that a tenant holds for an agent and that is in force now; NULL: the agent's own counts.
CREATE FUNCTION handoff_policy_in_force(p_tenant uuid, p_agent text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (SELECT r.agent || '/held/' || r.number FROM approvals_policyrelease r
            WHERE r.tenant_id = p_tenant AND r.agent = p_agent ORDER BY r.id DESC LIMIT 1);
END
$$;
"""

QUORUMS = """
-- Those of the people who are, now, in one of the tenant's groups with these titles.
CREATE FUNCTION handoff_in_groups(p_tenant uuid, p_people uuid[], p_titles jsonb) RETURNS uuid[]
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN ARRAY(
        SELECT p FROM unnest(p_people) AS p WHERE EXISTS (
            SELECT FROM accounts_user_groups g JOIN accounts_tenantgroup t ON t.group_id = g.group_id
             WHERE g.user_id = p AND t.tenant_id = p_tenant
               AND lower(t.title) IN (SELECT lower(title) FROM jsonb_array_elements_text(p_titles) AS title)));
END
$$;

-- Those of the people who are active members of no other tenant, now.
CREATE FUNCTION handoff_of_this_tenant_alone(p_tenant uuid, p_people uuid[]) RETURNS uuid[]
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN ARRAY(
        SELECT p FROM unnest(p_people) AS p WHERE NOT EXISTS (
            SELECT FROM accounts_membership m WHERE m.user_id = p AND m.tenant_id <> p_tenant AND m.active));
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_tenant_group"),
        ("approvals", "0002_guards"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="request",
            name="not_by",
            field=models.JSONField(db_default=models.Value([], models.JSONField()), default=list),
        ),
        migrations.AddField(
            model_name="request",
            name="quorums",
            field=models.JSONField(db_default=models.Value([], models.JSONField()), default=list),
        ),
        migrations.CreateModel(
            name="PolicyRelease",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("agent", models.CharField(max_length=80)),
                ("number", models.PositiveIntegerField(null=True)),
                ("reason", models.TextField()),
                ("at", models.DateTimeField()),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "agent", "-id"], name="approvals_policyrelease_latest")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("reason__regex", "\\S")), name="approvals_policyrelease_reason"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PolicyVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("agent", models.CharField(max_length=80)),
                ("number", models.PositiveIntegerField()),
                ("text", models.TextField()),
                ("digest", models.CharField(max_length=80)),
                ("reason", models.TextField()),
                ("at", models.DateTimeField()),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "agent", "number"), name="approvals_policyversion_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("agent__regex", "^\\S+$"), ("number__gte", 1)),
                        name="approvals_policyversion_plain",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason__regex", "\\S")),
                        name="approvals_policyversion_has_reason",
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            HELD,
            "DROP FUNCTION handoff_policy_in_force(uuid, text);"
            "DROP TRIGGER append_only ON approvals_policyversion; DROP TRIGGER append_only ON approvals_policyrelease;"
            "DROP TRIGGER fenced ON approvals_policyrelease; DROP FUNCTION handoff_policy_released();"
            "ALTER TABLE approvals_policyrelease DROP CONSTRAINT approvals_policyrelease_of_version;",
        ),
        migrations.RunSQL(
            QUORUMS,
            "DROP FUNCTION handoff_of_this_tenant_alone(uuid, uuid[]);"
            "DROP FUNCTION handoff_in_groups(uuid, uuid[], jsonb);",
        ),
    ]
