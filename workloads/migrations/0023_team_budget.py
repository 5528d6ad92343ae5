
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0016_shares_notebooks'),
        ('workloads', '0022_allocation_intervals'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='TeamBudget',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('amount', models.DecimalField(decimal_places=2, max_digits=14)),
                ('at_limit', models.CharField(choices=[('tell', 'owners are told, nothing else'), ('confirm', 'new launches need the confirmation of an owner'), ('stop', 'nothing starts')], default='tell', max_length=10)),
                ('confirmed_at', models.DateTimeField(blank=True, null=True)),
                ('cost', models.DecimalField(decimal_places=2, default=0, max_digits=16)),
                ('month_since', models.DateTimeField(blank=True, null=True)),
                ('month_until', models.DateTimeField(blank=True, null=True)),
                ('measured_at', models.DateTimeField(blank=True, null=True)),
                ('recent_cost', models.DecimalField(decimal_places=2, default=0, max_digits=16)),
                ('recent_since', models.DateTimeField(blank=True, null=True)),
                ('told_percent', models.PositiveSmallIntegerField(default=0)),
                ('confirmed_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('amount__gt', 0)), name='budget_amount')],
            },
        ),
    ]
