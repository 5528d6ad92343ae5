from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models.fields.json import KT


class Migration(migrations.Migration):
    """Runs are launched while the indexes are built."""

    atomic = False
    dependencies = [("workloads", "0027_drain_choices")]

    operations = [
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(KT("spec__gpu_class"), condition=models.Q(("ended_at", None)), name="run_live_class"),
        ),
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("ended_at", None)), fields=["requested_by"], name="run_live_person"
            ),
        ),
    ]
