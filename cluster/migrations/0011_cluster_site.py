from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("cluster", "0010_pod_removal"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="site",
            field=models.JSONField(blank=True, db_default={}, default=dict, editable=False),
        ),
    ]
