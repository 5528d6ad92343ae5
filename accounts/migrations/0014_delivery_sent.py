from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Emails are sent while the index is built."""

    atomic = False
    dependencies = [("accounts", "0013_notices")]

    operations = [
        AddIndexConcurrently(
            model_name="delivery",
            index=models.Index(condition=models.Q(("sent_at__isnull", False)), fields=["sent_at"], name="delivery_sent"),
        ),
    ]
