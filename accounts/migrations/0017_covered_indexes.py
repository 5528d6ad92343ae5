import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Other indexes begin with the same columns. Django's own operation would check the foreign keys again, under a lock."""

    atomic = False
    dependencies = [("accounts", "0016_announced_kind")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS accounts_identity_user_id_f7ddf146",
                    "CREATE INDEX CONCURRENTLY accounts_identity_user_id_f7ddf146 ON accounts_identity (user_id)",
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    "identity",
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="identities",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
    ]
