from django.db import migrations, models

BEFORE = (
    "growth_percent_max",
    "units_max",
    "days_max",
    "peak_percent_min",
    "mean_percent_min",
    "waited_percent_min",
    "seen_percent_min",
)
AFTER = (*BEFORE, "activity_percent_min")
RANGES = {
    "growth_percent_max__range": (1, 1000),
    "units_max__range": (1, 100_000),
    "days_max__range": (1, 1096),
    "peak_percent_min__range": (1, 100),
    "mean_percent_min__range": (0, 100),
    "waited_percent_min__range": (0, 100),
    "seen_percent_min__range": (1, 100),
}


def no_minimum(apps, schema_editor):
    apps.get_model("tenants", "Rule").objects.filter(name="increase").update(activity_percent_min=0)


def of_increase(names):
    return models.CheckConstraint(
        condition=(~models.Q(name="increase") & models.Q(**{f"{name}__isnull": True for name in names}))
        | models.Q(name="increase", **{f"{name}__isnull": False for name in names}),
        name="rule_bounds_of_increase",
    )


def possible(ranges):
    return models.CheckConstraint(
        condition=models.Q(name__in=["decrease", "starter", "bundle"]) | models.Q(**ranges),
        name="rule_bounds_possible",
    )


class Migration(migrations.Migration):
    """The release before only changes the row that exists, and no column that is added here."""

    dependencies = [("tenants", "0016_shares_notebooks")]

    operations = [
        migrations.AddField(
            model_name="rule",
            name="activity_percent_min",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.RunPython(no_minimum, migrations.RunPython.noop),
        migrations.RemoveConstraint(model_name="rule", name="rule_bounds_of_increase"),
        migrations.RemoveConstraint(model_name="rule", name="rule_bounds_possible"),
        migrations.AddConstraint(model_name="rule", constraint=of_increase(AFTER)),
        migrations.AddConstraint(
            model_name="rule", constraint=possible({**RANGES, "activity_percent_min__range": (0, 100)})
        ),
    ]
