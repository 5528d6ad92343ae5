from django.db import migrations

TABLES = ["mirrorepoch", "mirrorkind", "mirrornode", "mirrorpod", "mirrorjob", "mirrorworkload", "mirrorobject", "mirrorwarning"]


class Migration(migrations.Migration):
    """The mirror is a cache: no write-ahead log, emptied by PostgreSQL after a crash, then listed again."""

    dependencies = [("cluster", "0001_initial")]
    operations = [
        migrations.RunSQL(f"ALTER TABLE cluster_{table} SET UNLOGGED", f"ALTER TABLE cluster_{table} SET LOGGED") for table in TABLES
    ]
