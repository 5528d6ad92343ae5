"""desk/installation/rights.py against the tables that there are, and what PostgreSQL refuses to each role."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import ProgrammingError, connection, transaction

from desk.health.cluster_metrics import cluster_families
from desk.health.metrics import families
from desk.installation.rights import RIGHTS, ROLES
from portal.core import due
from portal.ops import health
from tenants.models import Tenant
from tests.support.database_roles import in_role
from tests.support.rows import make

pytestmark = pytest.mark.django_db

REFUSED = {
    "web": [
        "UPDATE workloads_run SET spec = '{}'",
        "UPDATE workloads_run SET workload_id = 1",
        "UPDATE workloads_run SET started_at = now()",
        "DELETE FROM workloads_run",
        "UPDATE workloads_allocationinterval SET units = 0",
        "DELETE FROM workloads_allocationinterval",
        "UPDATE usage_capacityinterval SET units = 0",
        "UPDATE workloads_teambudget SET cost = 0",
        "UPDATE catalog_classprice SET price_per_unit_hour = 0",
        "DELETE FROM catalog_classprice",
        "SELECT sealed FROM workloads_teamsecret",
        "SELECT * FROM workloads_registrycredential",
        "UPDATE workloads_teamsecret SET namespace_id = 1",
        "DROP TRIGGER accounts_event_no_change ON accounts_event",
        "ALTER TABLE accounts_event DISABLE TRIGGER ALL",
        "UPDATE accounts_event SET verb = ''",
        "DELETE FROM accounts_event",
        "TRUNCATE accounts_event",
        "UPDATE cluster_mirrorpod SET phase = 'Running'",
        "UPDATE workloads_workload SET leased_until = now()",
        "INSERT INTO workloads_notebooksession VALUES ('a', 'b', now(), 1, 1)",
        "CREATE TABLE workloads_more (id bigint)",
        "SET session_replication_role = replica",
    ],
    "doors": [
        "SELECT sealed FROM workloads_teamsecret",
        "SELECT data FROM mfa_authenticator",
        "INSERT INTO accounts_event (verb) VALUES ('a')",
        "UPDATE workloads_run SET stop_requested_at = now()",
        "UPDATE accounts_user SET roles = '{admin}'",
    ],
    "worker": [
        "UPDATE workloads_run SET spec = '{}'",
        "SELECT data FROM mfa_authenticator",
        "SELECT * FROM django_session",
        "SELECT session_key FROM django_session",
        "SELECT * FROM accounts_apitoken",
        "UPDATE accounts_user SET roles = '{admin}'",
        "UPDATE workloads_workload SET image = ''",
        "DELETE FROM accounts_event",
        "DELETE FROM cluster_mirrorpod",
        "UPDATE usage_capacityinterval SET units = 0",
        "UPDATE workloads_teambudget SET amount = 1",
        "INSERT INTO catalog_classprice (gpu_class_id, price_per_unit_hour) VALUES (1, 0)",
    ],
    "watcher": [
        "SELECT * FROM accounts_user",
        "SELECT body FROM accounts_delivery",
        "SELECT sealed FROM workloads_teamsecret",
        "INSERT INTO accounts_event (verb) VALUES ('a')",
        "UPDATE workloads_workload SET image = ''",
        "DELETE FROM cluster_appliedobject",
    ],
    "beat": [
        "SELECT * FROM accounts_user",
        "SELECT body FROM accounts_delivery",
        "SELECT * FROM workloads_workload",
        "UPDATE workloads_workload SET due_at = now()",
        "DELETE FROM cluster_mirrorpod",
    ],
}
ACCEPTED = {
    "web": ["UPDATE workloads_run SET stop_requested_at = now()", "UPDATE workloads_teamsecret SET sealed = ''"],
    "doors": ["UPDATE workloads_ticket SET used_at = now()", "DELETE FROM workloads_notebooksession"],
    "worker": ["SELECT sealed FROM workloads_teamsecret", "UPDATE workloads_run SET started_at = now()"],
    "watcher": ["DELETE FROM cluster_mirrorpod", "UPDATE workloads_workload SET due_at = now() WHERE id = 1"],
    "beat": ["SELECT due_at FROM workloads_workload WHERE leased_until IS NULL", "SELECT * FROM cluster_mirrorpod"],
}


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def test_every_table_has_a_line_and_every_line_a_table() -> None:
    with connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor))

    assert set(RIGHTS) == tables


@pytest.mark.parametrize(("process", "statement"), [(who, one) for who, all_ in REFUSED.items() for one in all_])
def test_a_role_is_refused(process: str, statement: str) -> None:
    with undone(), in_role(process), pytest.raises(ProgrammingError) as told, connection.cursor() as cursor:
        cursor.execute(statement)

    assert isinstance(told.value.__cause__, psycopg.errors.InsufficientPrivilege)


@pytest.mark.parametrize(("process", "statement"), [(who, one) for who, all_ in ACCEPTED.items() for one in all_])
def test_a_role_is_allowed(process: str, statement: str) -> None:
    with undone(), in_role(process), connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize("process", ROLES)
def test_every_process_answers_probes_and_measures(process: str, team_a: Tenant) -> None:
    make.gpu_class(team_a.namespaces.get().cluster, slug="measured")
    with in_role(process):
        assert health._database() == ""
        assert due.overdue_s()
        assert [*families(), *cluster_families()]
