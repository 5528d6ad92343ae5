from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workloads', '0026_draining'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='drain_choices',
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
    ]
