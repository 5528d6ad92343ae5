from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0016_idle_action'),
    ]

    operations = [
        migrations.AddField(
            model_name='gpuclass',
            name='topology',
            field=models.CharField(blank=True, db_default='', default='', help_text='Empty: hosts only', max_length=63),
        ),
    ]
