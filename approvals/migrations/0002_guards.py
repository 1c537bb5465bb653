"""What PostgreSQL refuses: changes of a decision, an attempt, or what a request is bound to."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations
from django.db.migrations.operations.base import Operation

REQUEST_GUARD = """
CREATE FUNCTION approvals_request_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF to_jsonb(NEW) - ARRAY['state', 'closed_at', 'cause'] <> to_jsonb(OLD) - ARRAY['state', 'closed_at', 'cause'] THEN
        RAISE EXCEPTION 'request % is bound: only its state may change', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.state = 'pending' AND NEW.state <> 'consumed'
       OR OLD.state = 'valid' AND NEW.state IN ('consumed', 'voided', 'expired', 'taken_back')
       OR to_jsonb(NEW) = to_jsonb(OLD) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'request % cannot go from % to %', OLD.id, OLD.state, NEW.state USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER guard BEFORE UPDATE ON approvals_request FOR EACH ROW EXECUTE FUNCTION approvals_request_guard();
"""

APPEND_ONLY = """
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION handoff_append_only();
"""


class Migration(migrations.Migration):
    dependencies: ClassVar[list[tuple[str, str]]] = [
        ("approvals", "0001_initial"),
        ("accounts", "0002_fence"),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.RunSQL(
            REQUEST_GUARD, "DROP TRIGGER guard ON approvals_request; DROP FUNCTION approvals_request_guard();"
        ),
        *(
            migrations.RunSQL(APPEND_ONLY.format(table=table), f"DROP TRIGGER append_only ON {table};")
            for table in ("approvals_decision", "approvals_attempt")
        ),
    ]
