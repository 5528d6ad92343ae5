"""UsageHour and UsageSample were models of `workloads`. Only Django's record of them moves, not the tables."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("catalog", "0004_class_life_cycle"),
        ("cluster", "0006_mirror_units"),
        ("tenants", "0007_founding"),
        ("workloads", "0021_usage_moves"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="UsageHour",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "cluster_id", "hour", blank=True, editable=False, primary_key=True, serialize=False
                            ),
                        ),
                        ("hour", models.DateTimeField()),
                        ("minutes", models.PositiveSmallIntegerField()),
                        ("last_minute", models.DateTimeField()),
                        (
                            "cluster",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="cluster.cluster",
                            ),
                        ),
                    ],
                    options={"db_table": "workloads_usagehour"},
                ),
                migrations.CreateModel(
                    name="UsageSample",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "namespace_id",
                                "gpu_class_id",
                                "hour",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("hour", models.DateTimeField(db_index=True)),
                        ("units_max", models.PositiveIntegerField()),
                        ("units_sum", models.PositiveIntegerField()),
                        ("samples", models.PositiveSmallIntegerField()),
                        (
                            "gpu_class",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="catalog.gpuclass",
                            ),
                        ),
                        (
                            "namespace",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="tenants.namespace",
                            ),
                        ),
                    ],
                    options={"db_table": "workloads_usagesample"},
                ),
            ],
        ),
    ]
