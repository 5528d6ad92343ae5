from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tenants", "0009_deputies")]
    operations: list[migrations.operations.base.Operation] = []
