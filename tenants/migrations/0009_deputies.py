import django.contrib.postgres.constraints
import django.contrib.postgres.fields.ranges
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

# As they are shipped; staff change them.
INCREASE = {
    "growth_percent_max": 50,
    "units_max": 8,
    "days_max": 92,
    "peak_percent_min": 90,
    "mean_percent_min": 50,
    "waited_percent_min": 10,
    "seen_percent_min": 80,
}


def ship(apps, schema_editor):
    rules = apps.get_model("tenants", "Rule").objects
    rules.create(name="starter")
    rules.create(name="bundle")
    rules.create(name="increase", is_on=False, **INCREASE)


def take_back(apps, schema_editor):
    apps.get_model("tenants", "Rule").objects.exclude(name="decrease").delete()


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0008_rules"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations: list[migrations.operations.base.Operation] = [
        migrations.CreateModel(
            name="Deputy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("period", django.contrib.postgres.fields.ranges.DateTimeRangeField()),
                (
                    "named_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "approver",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "deputy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={"verbose_name_plural": "deputies", "ordering": ["id"]},
        ),
        migrations.AddConstraint(
            model_name="deputy",
            constraint=models.CheckConstraint(
                condition=~models.Q(approver=models.F("deputy")), name="deputy_is_somebody_else"
            ),
        ),
        migrations.AddConstraint(
            model_name="deputy",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    period__isempty=False, period__startswith__isnull=False, period__endswith__isnull=False
                ),
                name="deputy_period_bounded",
            ),
        ),
        migrations.AddConstraint(
            model_name="deputy",
            constraint=django.contrib.postgres.constraints.ExclusionConstraint(
                condition=models.Q(ended_at=None),
                expressions=[("approver", "="), ("period", "&&")],
                name="one_deputy_at_a_time",
            ),
        ),
        *[
            migrations.AddField(model_name="rule", name=name, field=models.PositiveIntegerField(blank=True, null=True))
            for name in INCREASE
        ],
        migrations.RunPython(ship, take_back),
        migrations.AddConstraint(
            model_name="rule",
            constraint=models.CheckConstraint(
                condition=(~models.Q(name="increase") & models.Q(**{f"{name}__isnull": True for name in INCREASE}))
                | models.Q(name="increase", **{f"{name}__isnull": False for name in INCREASE}),
                name="rule_bounds_of_increase",
            ),
        ),
        migrations.AddConstraint(
            model_name="rule",
            constraint=models.CheckConstraint(
                condition=models.Q(name__in=["decrease", "starter", "bundle"])
                | models.Q(
                    growth_percent_max__range=(1, 1000),
                    units_max__range=(1, 100_000),
                    days_max__range=(1, 1096),
                    peak_percent_min__range=(1, 100),
                    mean_percent_min__range=(0, 100),
                    waited_percent_min__range=(0, 100),
                    seen_percent_min__range=(1, 100),
                ),
                name="rule_bounds_possible",
            ),
        ),
    ]
