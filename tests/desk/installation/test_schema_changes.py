"""While an upgrade runs, and after a rollback, the earlier release works on the new schema: migrations only add to it.

What removes or narrows something comes a release later, when no code uses it any more, and is listed here with why the
earlier release does not notice.
"""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

# The rule holds for what is newer.
SINCE = {
    "accounts": "0015", "catalog": "0016", "cluster": "0014", "operations": "0000", "tenants": "0017", "usage": "0006",
    "workloads": "0025",
}  # fmt: skip
# By migration: why the earlier release works with it nevertheless.
ALLOWED = {"cluster.0015_observe_only": "The table has one row: its index is made at once."}

_TABLE = r'(?:ONLY )?"(\w+)"'
_RULES = (
    (rf"^DROP TABLE {_TABLE}", "drops a table"),
    (rf"^ALTER TABLE {_TABLE} .*\bDROP COLUMN", "drops a column"),
    (rf"^ALTER TABLE {_TABLE} .*\bRENAME", "renames"),
    (rf"^ALTER TABLE {_TABLE} .*\bSET NOT NULL", "lets a column be NULL no longer"),
    (
        rf"^ALTER TABLE {_TABLE} ALTER COLUMN \S+ TYPE",
        "changes the type of a column, which rewrites or locks its table",
    ),
    (rf'^ALTER TABLE {_TABLE} ALTER COLUMN "\w+" DROP DEFAULT', "drops a default: inserts of the earlier release fail"),
    (rf"^ALTER TABLE {_TABLE} ADD COLUMN (?!.*DEFAULT)[^;]*\bNOT NULL", "adds a column that inserts must name"),
    (rf"^ALTER TABLE {_TABLE} ADD CONSTRAINT (?!.*NOT VALID)", "adds a constraint: reads all rows under a lock"),
    (rf"^CREATE (?:UNIQUE )?INDEX (?!CONCURRENTLY)\S+ ON {_TABLE}", "adds an index, which stops writes: CONCURRENTLY"),
)


def faults(statements: list[str]) -> list[str]:
    """What the earlier release, or its users, would notice of a migration. A table that it creates is nobody's yet."""
    own = {found[1] for one in statements if (found := re.match(r'CREATE TABLE "(\w+)"', one))}
    found = [
        f"{said}: {one}"
        for one in statements
        for pattern, said in _RULES
        if (match := re.match(pattern, one, re.DOTALL)) and match[1] not in own
    ]
    return found + [f"runs code: {one}" for one in statements if one.startswith("-- THIS OPERATION CANNOT BE WRITTEN")]


@pytest.mark.parametrize(
    ("statement", "is_fault"),
    [
        ('ALTER TABLE "t" ADD COLUMN "c" text NULL;', False),
        ('ALTER TABLE "t" ADD COLUMN "c" text DEFAULT \'\' NOT NULL;', False),
        ('ALTER TABLE "t" ADD COLUMN "c" bigint NOT NULL;', True),
        ('ALTER TABLE "t" ALTER COLUMN "c" DROP DEFAULT;', True),
        ('ALTER TABLE "t" ALTER COLUMN "c" SET NOT NULL;', True),
        ('ALTER TABLE "t" ALTER COLUMN "c" DROP NOT NULL;', False),
        ('ALTER TABLE "t" ALTER COLUMN "c" TYPE varchar(9) USING "c"::varchar(9);', True),
        ('ALTER TABLE "t" DROP COLUMN "c" CASCADE;', True),
        ('ALTER TABLE "t" RENAME COLUMN "c" TO "d";', True),
        ('ALTER TABLE "t" RENAME TO "u";', True),
        ('DROP TABLE "t" CASCADE;', True),
        ('ALTER TABLE "t" ADD CONSTRAINT "k" CHECK ("c" > 0);', True),
        ('ALTER TABLE "t" ADD CONSTRAINT "k" CHECK ("c" > 0) NOT VALID;', False),
        ('ALTER TABLE "t" DROP CONSTRAINT "k";', False),
        ('CREATE INDEX "i" ON "t" ("c");', True),
        ('CREATE UNIQUE INDEX "i" ON "t" ("c");', True),
        ('CREATE INDEX CONCURRENTLY "i" ON "t" ("c");', False),
        ("-- THIS OPERATION CANNOT BE WRITTEN AS SQL", True),
    ],
)
def test_what_the_earlier_release_would_notice(statement: str, is_fault: bool) -> None:
    assert bool(faults([statement])) == is_fault


def test_a_new_table_may_have_anything() -> None:
    assert faults(['CREATE TABLE "t" ("c" bigint NOT NULL);', 'CREATE INDEX "i" ON "t" ("c");']) == []


# Outside a transaction, since an index may be built CONCURRENTLY.
@pytest.mark.django_db(transaction=True)
def test_migrations_only_add_to_the_schema() -> None:
    loader = MigrationLoader(connection, replace_migrations=False)
    found = {}
    for (app, name), migration in sorted(loader.disk_migrations.items()):
        if app in SINCE and name[:4] > SINCE[app]:
            statements = loader.collect_sql([(migration, False)])
            found[f"{app}.{name}"] = faults(statements)
    assert found, "there are newer migrations"
    noticed = {name: those for name, those in found.items() if those}
    assert noticed.keys() == ALLOWED.keys(), noticed
