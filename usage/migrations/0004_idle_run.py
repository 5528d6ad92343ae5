
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0016_idle_action'),
        ('tenants', '0016_shares_notebooks'),
        ('usage', '0003_capacity'),
        ('workloads', '0022_allocation_intervals'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='IdleRun',
            fields=[
                ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='workloads.run')),
                ('units', models.PositiveIntegerField()),
                ('price_per_unit_hour', models.DecimalField(decimal_places=4, max_digits=12)),
                ('is_idle', models.BooleanField(default=True)),
                ('idle_since', models.DateTimeField()),
                ('judged_at', models.DateTimeField()),
                ('minutes', models.PositiveIntegerField()),
                ('seen_minutes', models.PositiveIntegerField()),
                ('activity_percent', models.FloatField(blank=True, null=True)),
                ('memory_mib', models.FloatField(blank=True, null=True)),
                ('told_at', models.DateTimeField(blank=True, null=True)),
                ('stops_at', models.DateTimeField(blank=True, null=True)),
                ('kept_until', models.DateTimeField(blank=True, null=True)),
                ('kept_reason', models.CharField(blank=True, default='', max_length=200)),
                ('gpu_class', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='catalog.gpuclass')),
                ('kept_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('namespace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.namespace')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('stops_at', None), ('told_at__isnull', False), _connector='OR'), name='idle_run_told_before_it_stops'), models.CheckConstraint(condition=models.Q(('kept_until', None), models.Q(('kept_reason', ''), _negated=True), _connector='OR'), name='idle_run_kept_for_a_reason')],
            },
        ),
    ]
