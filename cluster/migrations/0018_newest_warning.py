from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("cluster", "0017_covered_indexes")]

    operations = [
        AddIndexConcurrently(
            "mirrorwarning",
            models.Index(fields=["cluster_id", "object_uid", "reason", "-last_at"], name="mirror_warning_newest"),
        ),
        RemoveIndexConcurrently("mirrorwarning", "mirror_warning_object"),
    ]
