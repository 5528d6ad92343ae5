
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0015_class_price'),
        ('tenants', '0016_shares_notebooks'),
        ('workloads', '0023_team_budget'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='allocationinterval',
            index=models.Index(fields=['namespace', 'starts_at'], name='allocation_by_namespace'),
        ),
    ]
