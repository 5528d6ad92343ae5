from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workloads", "0003_usage_samples")]

    operations = [
        migrations.AddField(
            model_name="workload", name="options", field=models.JSONField(blank=True, default=dict, db_default={})
        ),
    ]
