from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("workloads", "0029_covered_indexes")]

    operations = [
        AddIndexConcurrently(
            "run",
            models.Index(
                condition=models.Q(("admitted_at", None), ("ended_at", None)),
                fields=["requested_at"],
                name="run_waiting",
            ),
        ),
    ]
