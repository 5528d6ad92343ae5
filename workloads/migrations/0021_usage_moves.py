"""UsageHour and UsageSample become models of `usage`, which continues with the same tables."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workloads", "0020_storage_class")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="UsageHour"), migrations.DeleteModel(name="UsageSample")]
        ),
    ]
