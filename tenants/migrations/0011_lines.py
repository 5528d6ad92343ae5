from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tenants", "0010_close")]
    operations: list[migrations.operations.base.Operation] = []
