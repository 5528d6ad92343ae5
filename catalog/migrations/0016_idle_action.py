
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0015_class_price'),
        ('cluster', '0014_admission_period'),
    ]

    operations = [
        migrations.AddField(
            model_name='gpuclass',
            name='idle_action',
            field=models.CharField(choices=[('off', 'none'), ('tell', 'notify'), ('stop', 'warn, then stop')], db_default='tell', default='tell', help_text="If the measured activity of a run's GPUs says so; never for a shared class", max_length=5, verbose_name='action if GPUs are idle'),
        ),
        migrations.AddField(
            model_name='gpuclass',
            name='idle_minutes',
            field=models.PositiveIntegerField(db_default=60, default=60, help_text='Minutes without GPU activity after which a run is idle'),
        ),
        migrations.AddConstraint(
            model_name='gpuclass',
            constraint=models.CheckConstraint(condition=models.Q(('idle_minutes__gte', 5), ('idle_minutes__lte', 10080)), name='gpu_class_idle_minutes'),
        ),
    ]
