"""Owners of obligations and when they are overdue; what plans take for true, with its basis."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import Q

BEFORE = import_module("runs.migrations.0013_constraints").PROJECT
# A process of the version before gives rows without the columns that are new.
PROJECT = BEFORE.replace(
    """SELECT * FROM jsonb_populate_recordset(NULL::runs_obligation, p_rows->'obligations')
    ON CONFLICT (run_id, number) DO UPDATE
    SET discharged_seq = excluded.discharged_seq, handed_over = excluded.handed_over;""",
    """SELECT * FROM jsonb_populate_recordset(
      jsonb_populate_record(NULL::runs_obligation, '{"to_whom": "", "owner": "", "owner_name": ""}'),
      p_rows->'obligations')
    ON CONFLICT (run_id, number) DO UPDATE SET discharged_seq = excluded.discharged_seq,
      handed_over = excluded.handed_over, owner = excluded.owner, owner_name = excluded.owner_name,
      overdue_seq = excluded.overdue_seq;
  INSERT INTO runs_assumption SELECT * FROM jsonb_populate_recordset(NULL::runs_assumption, p_rows->'assumptions')
    ON CONFLICT (run_id, plan_version, number) DO UPDATE SET broken_seq = excluded.broken_seq,
      broken_by = excluded.broken_by;""",
)


def _asked_of(apps: StateApps) -> Iterator[tuple[str, str, int, dict, int]]:
    """Each stored plan with assumptions: run, tenant, seq, document, and the seq of the next plan."""
    events = apps.get_model("runs", "Event").objects.filter(type="PlanProposed", body__isnull=False)
    for row in events.filter(body__contains='"assumptions":[{').iterator(chunk_size=200):
        later = (
            events.filter(run_id=row.run_id, seq__gt=row.seq).order_by("seq").values_list("seq", flat=True)
        )
        yield row.run_id, row.tenant_id, row.seq, json.loads(row.body)["document"], later.first() or 2**31 - 1


def _key(tool: str, arguments: object) -> str:
    return f"{tool} {json.dumps(arguments, sort_keys=True)}"


def _observed(apps: StateApps, run: str) -> dict[str, int]:
    """What the run has read: tool and arguments -> the number of the observation."""
    numbers: dict[str, int] = {}
    events = apps.get_model("runs", "Event").objects.filter(run_id=run, type="ObservationRecorded")
    for body in events.filter(body__isnull=False).order_by("seq").values_list("body", flat=True):
        found = json.loads(body)
        numbers.setdefault(_key(found["tool"], found["arguments"]), len(numbers) + 1)
    return numbers


def _broken(apps: StateApps, run: str, seq: int, until: int) -> dict[str, tuple[int, str]]:
    """The assumptions that a refused revalidation of that plan found broken: since when, and by what."""
    found: dict[str, tuple[int, str]] = {}
    events = apps.get_model("runs", "Event").objects.filter(run_id=run, type="RevalidationRefused")
    for row in events.filter(body__isnull=False, seq__gt=seq, seq__lt=until).order_by("seq"):
        for check in json.loads(row.body)["checks"]:
            if check["name"] == "assumptions" and not check["passed"]:
                found.setdefault(check.get("subject", ""), (row.seq, check.get("now", "")))
    return found


def fill(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """The rows of plans that were stored before there was a table of what they take for true."""
    assumption = apps.get_model("runs", "Assumption")
    for run, tenant, seq, document, until in _asked_of(apps):
        numbers, broken = _observed(apps, run), _broken(apps, run, seq, until)
        for number, assumed in enumerate(document["assumptions"], 1):
            rests = (_key(x["tool"], json.loads(x["arguments"])) for x in assumed["rests_on"])
            since, by = broken.get(assumed["text"], (None, ""))
            assumption.objects.create(
                run_id=run, tenant_id=tenant, plan_version=document["version"], number=number, text=assumed["text"],
                observations=[numbers[x] for x in rests if x in numbers],
                constraints=assumed.get("constraints", []), broken_seq=since, broken_by=by,
            )  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_fence"), ("runs", "0013_constraints")]

    operations = [
        migrations.AddField(
            "obligation", "to_whom", models.CharField(max_length=300, default="", db_default="")
        ),
        migrations.AddField(
            "obligation", "owner", models.CharField(max_length=100, default="", db_default="")
        ),
        migrations.AddField(
            "obligation", "owner_name", models.CharField(max_length=300, default="", db_default="")
        ),
        migrations.AddField("obligation", "overdue_seq", models.IntegerField(null=True)),
        migrations.AddIndex(
            "obligation",
            models.Index(
                fields=["due_at"],
                condition=Q(discharged_seq__isnull=True, overdue_seq__isnull=True, due_at__isnull=False),
                name="runs_obligation_due",
            ),
        ),
        migrations.CreateModel(
            name="Assumption",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id", "plan_version", "number", blank=True, editable=False, primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="assumptions",
                        to="runs.run",
                    ),
                ),
                ("plan_version", models.IntegerField()),
                ("number", models.IntegerField()),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+",
                        to="accounts.tenant",
                    ),
                ),
                ("text", models.TextField()),
                (
                    "observations",
                    django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None),
                ),
                (
                    "constraints",
                    django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None),
                ),
                ("broken_seq", models.IntegerField(null=True)),
                ("broken_by", models.TextField()),
            ],
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RunSQL(PROJECT, BEFORE),
    ]  # fmt: skip
