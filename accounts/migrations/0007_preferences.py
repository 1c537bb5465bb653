"""In which language and look pages are shown to a person, and whether single keys do something there."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0006_fence_titles"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="density",
            field=models.CharField(
                choices=[("comfortable", "Comfortable"), ("compact", "Compact")],
                default="comfortable",
                max_length=12,
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="language",
            field=models.CharField(blank=True, default="", max_length=16),
        ),
        migrations.AddField(
            model_name="user",
            name="shortcuts",
            field=models.BooleanField(default=True),
        ),
        migrations.AddField(
            model_name="user",
            name="theme",
            field=models.CharField(
                choices=[("system", "System theme"), ("light", "Light theme"), ("dark", "Dark theme")],
                default="system",
                max_length=8,
            ),
        ),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.CheckConstraint(
                condition=models.Q(("theme__in", ["system", "light", "dark"])), name="accounts_user_theme"
            ),
        ),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.CheckConstraint(
                condition=models.Q(("density__in", ["comfortable", "compact"])), name="accounts_user_density"
            ),
        ),
    ]
