import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Other indexes begin with the same columns. Django's own operation would check the foreign keys again, under a lock."""

    atomic = False
    dependencies = [("workloads", "0028_live_runs")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS workloads_registrycredential_namespace_id_f3ab8992",
                    "CREATE INDEX CONCURRENTLY workloads_registrycredential_namespace_id_f3ab8992 ON workloads_registrycredential (namespace_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS workloads_teamsecret_namespace_id_f0b93328",
                    "CREATE INDEX CONCURRENTLY workloads_teamsecret_namespace_id_f0b93328 ON workloads_teamsecret (namespace_id)",
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    "registrycredential",
                    "namespace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="registries",
                        to="tenants.namespace",
                    ),
                ),
                migrations.AlterField(
                    "teamsecret",
                    "namespace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="secrets",
                        to="tenants.namespace",
                    ),
                ),
            ],
        ),
    ]
