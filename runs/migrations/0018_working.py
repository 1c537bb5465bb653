"""Who works on a run, or was asked to, and what people wrote about it: rows beside the log, which no run is moved by."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q, Value
from django.db.models.functions import Length
from django.db.models.lookups import LessThanOrEqual

import accounts.origin

TRIGGERS = """
CREATE FUNCTION handoff_of_its_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM runs_run r WHERE r.id = NEW.run_id AND r.tenant_id = NEW.tenant_id) THEN
    RAISE EXCEPTION 'run % is of another tenant', NEW.run_id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER of_its_run BEFORE INSERT ON runs_working FOR EACH ROW EXECUTE FUNCTION handoff_of_its_run();
CREATE TRIGGER of_its_run BEFORE INSERT ON runs_note FOR EACH ROW EXECUTE FUNCTION handoff_of_its_run();

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON runs_note
  FOR EACH STATEMENT EXECUTE FUNCTION handoff_append_only();
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON runs_working
  FOR EACH STATEMENT EXECUTE FUNCTION handoff_append_only();

-- Of who works on a run only the renewal is written, and the end, once.
CREATE FUNCTION handoff_working_ends() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.ended_at IS NOT NULL OR NEW.active_at < OLD.active_at
      OR (OLD.id, OLD.tenant_id, OLD.run_id, OLD.kind, OLD.person_id, OLD.by_id, OLD.at)
      IS DISTINCT FROM (NEW.id, NEW.tenant_id, NEW.run_id, NEW.kind, NEW.person_id, NEW.by_id, NEW.at) THEN
    RAISE EXCEPTION 'who works on run % is renewed or ended once, and not changed', OLD.run_id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER working_ends BEFORE UPDATE ON runs_working FOR EACH ROW EXECUTE FUNCTION handoff_working_ends();
"""
BEFORE = """
DROP TRIGGER of_its_run ON runs_working; DROP TRIGGER of_its_run ON runs_note; DROP FUNCTION handoff_of_its_run();
DROP TRIGGER append_only ON runs_working; DROP TRIGGER append_only ON runs_note;
DROP TRIGGER working_ends ON runs_working; DROP FUNCTION handoff_working_ends();
"""
PERSON = settings.AUTH_USER_MODEL


def _to(what: str, **more: object) -> models.ForeignKey:
    return models.ForeignKey(
        on_delete=django.db.models.deletion.PROTECT, **{"related_name": "+", **more}, to=what
    )


def _id() -> models.BigAutoField:
    return models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0006_fence_titles"),
        ("runs", "0017_due"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Working",
            fields=[
                ("id", _id()),
                ("kind", models.CharField(max_length=10)),
                ("at", models.DateTimeField()),
                ("active_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("by", _to(PERSON)),
                ("person", _to(PERSON, db_index=False)),
                ("run", _to("runs.run", related_name="working", db_index=False)),
                ("tenant", _to("accounts.tenant", db_index=False)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["run", "kind"], condition=Q(ended_at__isnull=True), name="runs_working_one"
                    ),
                    models.CheckConstraint(
                        condition=Q(kind__in=["claim", "assignment"]), name="runs_working_kind"
                    ),
                    models.CheckConstraint(
                        condition=~Q(kind="claim") | Q(by=F("person")), name="runs_working_own"
                    ),
                    models.CheckConstraint(
                        condition=Q(active_at__gte=F("at"))
                        & (Q(ended_at__isnull=True) | Q(ended_at__gte=F("active_at"))),
                        name="runs_working_times",
                    ),
                ],
                "indexes": [
                    models.Index(
                        fields=["person"], condition=Q(ended_at__isnull=True), name="runs_working_person"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Note",
            fields=[
                ("id", _id()),
                ("text", models.TextField()),
                ("at", models.DateTimeField()),
                ("origin", models.JSONField(default=accounts.origin.origin)),
                ("person", _to(PERSON)),
                ("run", _to("runs.run", related_name="notes")),
                ("tenant", _to("accounts.tenant", db_index=False)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=Q(text__regex=r"\S"), name="runs_note_says"),
                    models.CheckConstraint(
                        condition=LessThanOrEqual(Length("text"), Value(4000)), name="runs_note_length"
                    ),
                ],
                "indexes": [models.Index(fields=["tenant", "-at"], name="runs_note_tenant_at")],
            },
        ),
        migrations.RunSQL(TRIGGERS, BEFORE),
    ]
