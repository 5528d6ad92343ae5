import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Other indexes begin with the same columns. Django's own operation would check the foreign keys again, under a lock."""

    atomic = False
    dependencies = [("operations", "0003_adoption")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS operations_cordonnotice_cordon_id_40553d13",
                    "CREATE INDEX CONCURRENTLY operations_cordonnotice_cordon_id_40553d13 ON operations_cordonnotice (cordon_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS operations_maintenancenode_maintenance_id_53f5c518",
                    "CREATE INDEX CONCURRENTLY operations_maintenancenode_maintenance_id_53f5c518 ON operations_maintenancenode (maintenance_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS operations_maintenancenotice_maintenance_id_9f3f87d0",
                    "CREATE INDEX CONCURRENTLY operations_maintenancenotice_maintenance_id_9f3f87d0 ON operations_maintenancenotice (maintenance_id)",
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    "cordonnotice",
                    "cordon",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to="operations.nodecordon",
                    ),
                ),
                migrations.AlterField(
                    "maintenancenode",
                    "maintenance",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="nodes",
                        to="operations.maintenance",
                    ),
                ),
                migrations.AlterField(
                    "maintenancenotice",
                    "maintenance",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to="operations.maintenance",
                    ),
                ),
            ],
        ),
    ]
