import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Other indexes begin with the same columns. Django's own operation would check the foreign keys again, under a lock."""

    atomic = False
    dependencies = [("cluster", "0016_cluster_uid")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS cluster_appliedobject_cluster_id_70cef166",
                    "CREATE INDEX CONCURRENTLY cluster_appliedobject_cluster_id_70cef166 ON cluster_appliedobject (cluster_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS cluster_objectdrift_cluster_id_e174d502",
                    "CREATE INDEX CONCURRENTLY cluster_objectdrift_cluster_id_e174d502 ON cluster_objectdrift (cluster_id)",
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    "appliedobject",
                    "cluster",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="cluster.cluster"
                    ),
                ),
                migrations.AlterField(
                    "objectdrift",
                    "cluster",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, to="cluster.cluster"
                    ),
                ),
            ],
        ),
    ]
