import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("cluster", "0008_mirror_lease"),
    ]

    operations = [
        migrations.CreateModel(
            name="ObjectDrift",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("owner", models.CharField(db_index=True, max_length=120)),
                ("kind", models.CharField(max_length=60)),
                ("namespace", models.CharField(blank=True, default="", max_length=63)),
                ("name", models.CharField(max_length=253)),
                ("key", models.CharField(max_length=64)),
                ("manager", models.CharField(blank=True, default="", max_length=128)),
                ("fields", models.JSONField(default=list)),
                ("is_deletion", models.BooleanField(default=False)),
                ("since", models.CharField(blank=True, default="", max_length=40)),
                ("times", models.PositiveIntegerField(default=1)),
                ("outcome", models.CharField(choices=[("repaired", "repaired"), ("refused", "not repaired")], max_length=10)),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField(db_index=True)),
                ("cluster", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="cluster.cluster")),
            ],
            options={
                "constraints": [models.UniqueConstraint(models.F("cluster"), models.F("kind"), models.F("namespace"), models.F("name"), models.F("key"), name="object_drift_once")],
            },
        ),
    ]
