import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Other indexes begin with the same columns. Django's own operation would check the foreign keys again, under a lock."""

    atomic = False
    dependencies = [("usage", "0006_class_hour")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS usage_faultrun_fault_id_b3394d14",
                    "CREATE INDEX CONCURRENTLY usage_faultrun_fault_id_b3394d14 ON usage_faultrun (fault_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS usage_gpufault_cluster_id_c9f9e046",
                    "CREATE INDEX CONCURRENTLY usage_gpufault_cluster_id_c9f9e046 ON usage_gpufault (cluster_id)",
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    "faultrun",
                    "fault",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="concerned",
                        to="usage.gpufault",
                    ),
                ),
                migrations.AlterField(
                    "gpufault",
                    "cluster",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="cluster.cluster",
                    ),
                ),
            ],
        ),
    ]
