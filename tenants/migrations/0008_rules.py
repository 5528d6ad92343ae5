from django.db import migrations, models


def ship(apps, schema_editor):
    apps.get_model("tenants", "Rule").objects.create(name="decrease")


class Migration(migrations.Migration):
    dependencies = [("tenants", "0007_founding")]
    operations = [
        migrations.CreateModel(
            name="Rule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=20, unique=True)),
                ("is_on", models.BooleanField(default=True)),
            ],
        ),
        migrations.RunPython(ship, migrations.RunPython.noop),
    ]
