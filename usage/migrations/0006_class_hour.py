
import django.db.models.deletion
from django.db import migrations, models

# Hours that were measured before. What the old release measures meanwhile is summed up when the next minute is read.
SUM_UP = """
INSERT INTO usage_classhour (gpu_class_id, hour, measured_hours, busy_hours)
SELECT hour.gpu_class_id, hour.hour, sum(run.units * bit_count(hour.seen_minutes::bit(64))) / 60.0,
       sum(run.units * hour.activity_sum) / 6000
  FROM usage_runhour hour
  JOIN (SELECT run_id, max(units) AS units FROM workloads_allocationinterval GROUP BY run_id) run USING (run_id)
 WHERE hour.measure <> 'shared'
 GROUP BY hour.gpu_class_id, hour.hour
"""


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0016_idle_action'),
        ('usage', '0005_gpu_faults'),
    ]

    operations = [
        migrations.CreateModel(
            name='ClassHour',
            fields=[
                ('pk', models.CompositePrimaryKey('gpu_class_id', 'hour', blank=True, editable=False, primary_key=True, serialize=False)),
                ('hour', models.DateTimeField(db_index=True)),
                ('measured_hours', models.FloatField()),
                ('busy_hours', models.FloatField()),
                ('gpu_class', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='catalog.gpuclass')),
            ],
        ),
        migrations.RunSQL(SUM_UP, migrations.RunSQL.noop),
    ]
