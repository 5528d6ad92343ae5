from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [
        ("cluster", "0009_object_drift"),
    ]

    operations = [
        migrations.CreateModel(
            name="PodRemoval",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("cluster_id", models.BigIntegerField()),
                ("namespace", models.CharField(max_length=63)),
                ("uid", models.CharField(max_length=36)),
                ("owner", models.CharField(max_length=120)),
                ("run", models.CharField(max_length=63)),
                ("node", models.CharField(max_length=253)),
                ("phase", models.CharField(max_length=20)),
                ("reason", models.CharField(max_length=1024)),
                ("message", models.CharField(max_length=1024)),
                ("disruption", models.CharField(max_length=1024)),
                ("disruption_message", models.CharField(max_length=1024)),
                ("disrupted_at", models.DateTimeField(null=True)),
                ("ran_since", models.DateTimeField(null=True)),
                ("removed_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(models.F("cluster_id"), models.F("uid"), name="pod_removal_once")
                ],
                "indexes": [models.Index(fields=["cluster_id", "owner"], name="pod_removal_owner")],
            },
        ),
    ]
