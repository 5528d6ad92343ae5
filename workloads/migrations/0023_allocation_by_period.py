import django.contrib.postgres.indexes
import workloads.allocations.models
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workloads', '0022_allocation_intervals'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='allocationinterval',
            name='allocation_of_team',
        ),
        migrations.AddIndex(
            model_name='allocationinterval',
            index=django.contrib.postgres.indexes.GistIndex(workloads.allocations.models.TsTzRange('starts_at', 'ends_at'), models.F('namespace'), name='allocation_by_period'),
        ),
    ]
