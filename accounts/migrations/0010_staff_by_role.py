from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0009_team_tokens'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='user',
            name='is_staff',
        ),
    ]

