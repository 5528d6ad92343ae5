import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('cluster', '0014_admission_period'),
        ('usage', '0004_idle_run'),
        ('workloads', '0024_allocations_by_namespace'),
    ]

    operations = [
        migrations.CreateModel(
            name='FaultSource',
            fields=[
                ('cluster', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='cluster.cluster')),
                ('read_until', models.DateTimeField(blank=True, null=True)),
                ('problem', models.CharField(blank=True, default='', max_length=300)),
                ('problem_since', models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name='GpuFault',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('node', models.CharField(max_length=253)),
                ('device', models.CharField(max_length=80)),
                ('instance', models.CharField(blank=True, default='', max_length=9)),
                ('gpu_model', models.CharField(blank=True, default='', max_length=80)),
                ('kind', models.CharField(max_length=20)),
                ('code', models.PositiveSmallIntegerField(default=0)),
                ('value', models.FloatField()),
                ('first_seen', models.DateTimeField()),
                ('last_seen', models.DateTimeField()),
                ('measured_at', models.DateTimeField()),
                ('cleared_at', models.DateTimeField(blank=True, null=True)),
                ('is_gone', models.BooleanField(default=False)),
                ('told_at', models.DateTimeField(blank=True, null=True)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='cluster.cluster')),
            ],
        ),
        migrations.CreateModel(
            name='FaultRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('since', models.DateTimeField()),
                ('told_at', models.DateTimeField(blank=True, null=True)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workloads.run')),
                ('fault', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='concerned', to='usage.gpufault')),
            ],
        ),
        migrations.AddIndex(
            model_name='gpufault',
            index=models.Index(fields=['cluster', 'cleared_at'], name='gpu_fault_by_end'),
        ),
        migrations.AddConstraint(
            model_name='gpufault',
            constraint=models.UniqueConstraint(condition=models.Q(('cleared_at', None)), fields=('cluster', 'device', 'instance', 'kind', 'code'), name='gpu_fault_open_once'),
        ),
        migrations.AddConstraint(
            model_name='gpufault',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['xid', 'ecc_double_bit', 'row_remap_failure', 'hot', 'thermal_throttling', 'nvlink_errors'])), name='gpu_fault_kind_known'),
        ),
        migrations.AddIndex(
            model_name='faultrun',
            index=models.Index(condition=models.Q(('told_at', None)), fields=['id'], name='fault_run_untold'),
        ),
        migrations.AddConstraint(
            model_name='faultrun',
            constraint=models.UniqueConstraint(fields=('fault', 'run'), name='fault_run_once'),
        ),
    ]
