from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now


def fill(apps, schema_editor):
    """Until now a team was closed at once, with its volumes; a row that rests is done with."""
    closed = apps.get_model("tenants", "Namespace").objects.filter(wanted="closed")
    closed.update(closes_at=Now(), volumes_until=Now())
    closed.filter(due_at=None).update(gone_at=Now())
    trials = apps.get_model("tenants", "QuotaLine").objects.filter(rule="starter").values("tenant_id")
    apps.get_model("tenants", "Namespace").objects.filter(tenant_id__in=trials).update(is_trial=True)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0009_deputies")]
    operations = [
        migrations.AddField("namespace", "closes_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("namespace", "volumes_until", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("namespace", "gone_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("namespace", "is_trial", models.BooleanField(db_default=False, default=False)),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AddConstraint(
            "namespace",
            models.CheckConstraint(
                condition=Q(wanted="closed", closes_at__isnull=False, volumes_until__gte=F("closes_at"))
                | (~Q(wanted="closed") & Q(closes_at=None, volumes_until=None, gone_at=None)),
                name="namespace_closed_with_its_instants",
            ),
        ),
    ]
