from importlib import import_module

from django.db import migrations

units = import_module("cluster.migrations.0006_mirror_units")

PLAIN = "WHERE key IN ('productName', 'profile', 'type')), '{}') AS kind"
# In bytes. A name without a domain is of the domain of the driver, and may also be written with it.
WITH_MEMORY = """WHERE key IN ('productName', 'profile', 'type')), '{}')
               || jsonb_strip_nulls(jsonb_build_object(
                      'memory', coalesce(device.value -> 'capacity' ->> 'memory',
                                         device.value -> 'capacity' ->> concat(slice.record ->> 'driver', '/memory')),
                      'divided', CASE WHEN device.value -> 'is_divided' = 'true' THEN 'true' END)) AS kind"""
OLD = units.COUNT.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
NEW = OLD.replace(PLAIN, WITH_MEMORY)
assert NEW != OLD, "the function of 0006 changed"


class Migration(migrations.Migration):
    """The kind of a device contains its memory, and whether it shares what it takes with other devices."""

    dependencies = [("cluster", "0012_certificate")]
    operations = [
        migrations.RunSQL(NEW, OLD),
        migrations.RunSQL(units.FILL, units.FILL),
    ]
