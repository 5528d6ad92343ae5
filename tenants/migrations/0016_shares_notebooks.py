from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0015_labels'),
    ]

    operations = [
        migrations.AddField(
            model_name='tenant',
            name='shares_notebooks',
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
