"""Notebooks that exist stay open to their team, as they were; new ones follow the choice of their owner."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workloads', '0017_workload_by_name'),
    ]

    operations = [
        migrations.AddField(
            model_name='workload',
            name='visibility',
            field=models.CharField(choices=[('private', 'private'), ('team', 'team')], db_default='team', default='private', max_length=10),
        ),
    ]
