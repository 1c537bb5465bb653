"""Documents of constraints outside, as they were last heard; a send that rests on one asks for it afresh."""

from __future__ import annotations

from importlib import import_module

from django.db import migrations, models

KEPT = """
CREATE FUNCTION handoff_configuration_key(ref text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT ('x' || left(encode(sha256(convert_to('configuration:' || ref, 'UTF8')), 'hex'), 16))::bit(64)::bigint
$$;

-- Another document waits for the sends that found the one before, and from its commit on none finds that.
CREATE FUNCTION handoff_configuration_heard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(handoff_configuration_key(NEW.ref));
  RETURN NEW;
END $$;
CREATE TRIGGER fenced BEFORE UPDATE ON runs_configurationkept FOR EACH ROW
  WHEN (OLD.digest IS DISTINCT FROM NEW.digest) EXECUTE FUNCTION handoff_configuration_heard();

-- What a send rests on is what was heard last, and not too long ago. The documents come by reference, with their digest.
CREATE FUNCTION handoff_guard_configuration(p_guard jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  rests record;
  kept record;
BEGIN
  FOR rests IN SELECT c.ref, c.digest FROM jsonb_each_text(p_guard->'configurations') AS c(ref, digest) ORDER BY 1 LOOP
    PERFORM pg_advisory_xact_lock_shared(handoff_configuration_key(rests.ref));
    SELECT k.digest, k.good_until INTO kept FROM runs_configurationkept k WHERE k.ref = rests.ref;
    IF kept.digest IS DISTINCT FROM rests.digest OR kept.good_until IS NULL OR kept.good_until <= handoff_now() THEN
      RETURN jsonb_build_object('refused', 'constraint', 'ref', rests.ref);
    END IF;
  END LOOP;
  RETURN NULL;
END $$;
"""

BEFORE = import_module("runs.migrations.0013_constraints").GUARD
GUARD = BEFORE.replace(
    """  IF obstacle IS NULL THEN
    obstacle := handoff_guard_authority""",
    """  IF obstacle IS NULL AND p_guard->'configurations' IS NOT NULL THEN
    obstacle := handoff_guard_configuration(p_guard);
  END IF;
  IF obstacle IS NULL THEN
    obstacle := handoff_guard_authority""",
)
DROPPED = """
DROP FUNCTION handoff_guard_configuration(jsonb);
DROP TRIGGER fenced ON runs_configurationkept;
DROP FUNCTION handoff_configuration_heard();
DROP FUNCTION handoff_configuration_key(text);
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0015_told")]

    operations = [
        migrations.CreateModel(
            name="ConfigurationKept",
            fields=[
                ("ref", models.CharField(max_length=300, primary_key=True, serialize=False)),
                ("etag", models.CharField(max_length=100)),
                ("version", models.CharField(max_length=100)),
                ("document", models.TextField()),
                ("digest", models.CharField(max_length=80)),
                ("asked_at", models.DateTimeField(null=True)),
                ("good_until", models.DateTimeField(null=True)),
                ("tried_at", models.DateTimeField()),
                ("failure", models.TextField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("asked_at__isnull", True), ("digest", ""), ("good_until__isnull", True)
                            ),
                            models.Q(
                                ("asked_at__isnull", False),
                                ("good_until__gt", models.F("asked_at")),
                                models.Q(("digest", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="runs_configuration_heard",
                    )
                ],
            },
        ),
        migrations.RunSQL(sql=KEPT + GUARD, reverse_sql=BEFORE + DROPPED),
    ]
