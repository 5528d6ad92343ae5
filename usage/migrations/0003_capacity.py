
import django.contrib.postgres.constraints
import django.contrib.postgres.indexes
import django.db.models.deletion
import workloads.allocations.models
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0015_class_price'),
        ('usage', '0002_run_hours'),
    ]

    operations = [
        migrations.CreateModel(
            name='CapacityInterval',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('units', models.PositiveIntegerField()),
                ('starts_at', models.DateTimeField()),
                ('ends_at', models.DateTimeField()),
                ('gpu_class', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='catalog.gpuclass')),
            ],
            options={
                'indexes': [django.contrib.postgres.indexes.GistIndex(workloads.allocations.models.TsTzRange('starts_at', 'ends_at', models.Value('[]')), name='capacity_by_period')],
                'constraints': [models.UniqueConstraint(models.F('gpu_class'), models.F('starts_at'), name='capacity_once'), models.CheckConstraint(condition=models.Q(('ends_at__gte', models.F('starts_at'))), name='capacity_order'), django.contrib.postgres.constraints.ExclusionConstraint(expressions=[('gpu_class', '='), (workloads.allocations.models.TsTzRange('starts_at', 'ends_at'), '&&')], name='capacity_no_overlap')],
            },
        ),
    ]
