from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('cluster', '0015_observe_only'),
    ]

    operations = [
        migrations.AddField(
            model_name='cluster',
            name='uid',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=36),
        ),
        migrations.AddField(
            model_name='cluster',
            name='other_uid',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=36),
        ),
        migrations.AddField(
            model_name='cluster',
            name='other_since',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
    ]
