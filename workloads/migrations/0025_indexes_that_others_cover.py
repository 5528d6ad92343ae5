import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Another index begins with the same columns. Django's own operation would check the foreign key again, under a lock."""

    atomic = False
    dependencies = [("workloads", "0024_allocations_by_namespace")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS workloads_run_workload_id_67419372",
                    "CREATE INDEX CONCURRENTLY workloads_run_workload_id_67419372 ON workloads_run (workload_id)",
                )
            ],
            state_operations=[
                migrations.AlterField(
                    "run",
                    "workload",
                    models.ForeignKey("workloads.Workload", django.db.models.deletion.PROTECT, db_index=False, related_name="runs"),
                )
            ],
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS workloads_runlog_run_id_beb1f0b9",
                    "CREATE INDEX CONCURRENTLY workloads_runlog_run_id_beb1f0b9 ON workloads_runlog (run_id)",
                )
            ],
            state_operations=[
                migrations.AlterField(
                    "runlog",
                    "run",
                    models.ForeignKey("workloads.Run", django.db.models.deletion.CASCADE, db_index=False, related_name="logs"),
                )
            ],
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS workloads_startprediction_run_id_6a6f3aa0",
                    "CREATE INDEX CONCURRENTLY workloads_startprediction_run_id_6a6f3aa0 ON workloads_startprediction (run_id)",
                )
            ],
            state_operations=[
                migrations.AlterField(
                    "startprediction",
                    "run",
                    models.ForeignKey("workloads.Run", django.db.models.deletion.CASCADE, db_index=False, related_name="predictions"),
                )
            ],
        ),
    ]
