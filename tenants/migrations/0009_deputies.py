from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tenants", "0008_rules")]
    operations: list[migrations.operations.base.Operation] = []
