import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Another index begins with the same columns. Django's own operation would check the foreign key again, under a lock."""

    atomic = False
    dependencies = [("accounts", "0014_delivery_sent")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS accounts_delivery_event_id_1e037ef4",
                    "CREATE INDEX CONCURRENTLY accounts_delivery_event_id_1e037ef4 ON accounts_delivery (event_id)",
                )
            ],
            state_operations=[
                migrations.AlterField(
                    "delivery",
                    "event",
                    models.ForeignKey("accounts.Event", django.db.models.deletion.DO_NOTHING, db_index=False, related_name="deliveries"),
                )
            ],
        ),
    ]
