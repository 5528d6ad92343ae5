from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("workloads", "0030_run_waiting")]

    operations = [
        AddIndexConcurrently("run", models.Index(fields=["admitted_at"], name="run_admitted")),
        AddIndexConcurrently(
            "run",
            models.Index(
                condition=models.Q(("reason", "topology_refused")), fields=["reason"], name="run_topology_refused"
            ),
        ),
    ]
