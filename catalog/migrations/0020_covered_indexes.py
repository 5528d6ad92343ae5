import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Other indexes begin with the same columns. Django's own operation would check the foreign keys again, under a lock."""

    atomic = False
    dependencies = [("catalog", "0019_measurement_withdrawn")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS catalog_devicetrial_cluster_id_24491954",
                    "CREATE INDEX CONCURRENTLY catalog_devicetrial_cluster_id_24491954 ON catalog_devicetrial (cluster_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS catalog_dismissedproposal_cluster_id_223ef489",
                    "CREATE INDEX CONCURRENTLY catalog_dismissedproposal_cluster_id_223ef489 ON catalog_dismissedproposal (cluster_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS catalog_gpuclass_cluster_id_8b394122",
                    "CREATE INDEX CONCURRENTLY catalog_gpuclass_cluster_id_8b394122 ON catalog_gpuclass (cluster_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS catalog_nodeunits_gpu_class_id_252908c2",
                    "CREATE INDEX CONCURRENTLY catalog_nodeunits_gpu_class_id_252908c2 ON catalog_nodeunits (gpu_class_id)",
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    "devicetrial",
                    "cluster",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="cluster.cluster",
                    ),
                ),
                migrations.AlterField(
                    "dismissedproposal",
                    "cluster",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="cluster.cluster",
                    ),
                ),
                migrations.AlterField(
                    "gpuclass",
                    "cluster",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="classes",
                        to="cluster.cluster",
                    ),
                ),
                migrations.AlterField(
                    "nodeunits",
                    "gpu_class",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="catalog.gpuclass",
                    ),
                ),
            ],
        ),
    ]
