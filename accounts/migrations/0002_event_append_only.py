from django.db import migrations

FORWARD = """
CREATE FUNCTION accounts_event_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'accounts_event is append-only: % is refused', TG_OP USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER accounts_event_no_change BEFORE UPDATE OR DELETE ON accounts_event
    FOR EACH ROW EXECUTE FUNCTION accounts_event_is_append_only();
CREATE TRIGGER accounts_event_no_truncate BEFORE TRUNCATE ON accounts_event
    FOR EACH STATEMENT EXECUTE FUNCTION accounts_event_is_append_only();
"""
BACKWARD = """
DROP TRIGGER accounts_event_no_truncate ON accounts_event;
DROP TRIGGER accounts_event_no_change ON accounts_event;
DROP FUNCTION accounts_event_is_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
