import datetime

from django.db import migrations, models

# What every grant stated before approvers set it.
GRACE = datetime.timedelta(days=1)


def state_grace(apps, schema_editor):
    lines = apps.get_model("tenants", "QuotaLine").objects.filter(state="approved")
    lines.update(decided_grace=GRACE)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0010_close")]
    operations = [
        migrations.AlterField(
            model_name="quotaline",
            name="kind",
            field=models.CharField(
                choices=[("base", "new total"), ("boost", "boost"), ("reclaim", "taking back")],
                default="base",
                max_length=7,
            ),
        ),
        migrations.AddField(
            model_name="quotaline", name="decided_grace", field=models.DurationField(blank=True, null=True)
        ),
        migrations.AddConstraint(
            model_name="quotaline",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("decided_grace__isnull", True),
                    models.Q(
                        ("decided_grace__gte", datetime.timedelta(0)),
                        ("decided_grace__lte", datetime.timedelta(days=14)),
                    ),
                    _connector="OR",
                ),
                name="line_decided_grace",
            ),
        ),
        migrations.RunPython(state_grace, migrations.RunPython.noop),
    ]
