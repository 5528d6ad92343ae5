
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0014_device_trial'),
        ('cluster', '0014_admission_period'),
        ('tenants', '0016_shares_notebooks'),
        ('usage', '0001_initial'),
        ('workloads', '0022_allocation_intervals'),
    ]

    operations = [
        migrations.CreateModel(
            name='TelemetrySource',
            fields=[
                ('cluster', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='cluster.cluster')),
                ('read_until', models.DateTimeField(blank=True, null=True)),
                ('missing_since', models.DateTimeField(blank=True, null=True)),
                ('missing_until', models.DateTimeField(blank=True, null=True)),
                ('problem', models.CharField(blank=True, default='', max_length=300)),
                ('problem_since', models.DateTimeField(blank=True, null=True)),
                ('is_partial', models.BooleanField(default=False)),
            ],
        ),
        migrations.CreateModel(
            name='RunHour',
            fields=[
                ('pk', models.CompositePrimaryKey('run_id', 'hour', blank=True, editable=False, primary_key=True, serialize=False)),
                ('hour', models.DateTimeField(db_index=True)),
                ('measure', models.CharField(choices=[('utilisation', 'GPU utilisation'), ('engine', 'engine activity'), ('shared', 'activity of the shared GPU')], max_length=12)),
                ('seen_minutes', models.BigIntegerField()),
                ('busy_minutes', models.BigIntegerField()),
                ('activity_sum', models.FloatField()),
                ('activity_max', models.FloatField()),
                ('activity_last', models.FloatField(default=0)),
                ('busy_devices_max', models.PositiveSmallIntegerField()),
                ('memory_samples', models.PositiveSmallIntegerField(default=0)),
                ('memory_sum_mib', models.FloatField(default=0)),
                ('memory_max_mib', models.FloatField(default=0)),
                ('memory_last_mib', models.FloatField(blank=True, null=True)),
                ('memory_total_mib', models.FloatField(default=0)),
                ('memory_share_max', models.FloatField(default=0)),
                ('power_samples', models.PositiveSmallIntegerField(default=0)),
                ('power_sum_w', models.FloatField(default=0)),
                ('power_last_w', models.FloatField(blank=True, null=True)),
                ('gpu_class', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='catalog.gpuclass')),
                ('namespace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.namespace')),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workloads.run')),
            ],
            options={
                'indexes': [models.Index(fields=['namespace', 'hour'], name='run_hour_by_namespace'), models.Index(fields=['gpu_class', 'hour'], name='run_hour_by_class')],
            },
        ),
    ]
