"""People and services that all tests use. Alice owns team A, Bob is a member, Charlie a stranger, Dana decides, Olga
operates.
"""

from __future__ import annotations

import fcntl
import gc
import hashlib
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from accounts.credentials import login_backoff
from accounts.models import Role, User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.processes.ports import free_port
from tenants.models import Membership, Namespace, Tenant
from tests.plugin import SERVICES_VARIABLE, process_environment, read_services
from tests.support import database_roles, template_database
from tests.support.cluster.removal import remove_from_cluster
from tests.support.economy import economy
from tests.support.http import contract
from tests.support.http.sessions import sign_cookies
from tests.support.processes.streaming import IN_DATABASE, NOTEBOOKS, Doors
from tests.support.rows import make
from tests.support.scheduling import in_turn
from tests.support.waiting import wait_until

# Fixtures that tests of several folders use.
pytest_plugins = ("tests.support.cluster.queued", "tests.support.workload_fixtures")
ROOT = Path(__file__).parent.parent
# The simulated hardware has only one unit of it.
SCARCE = "nvidia.com/mig-1g.10gb.me"

sign_cookies()


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Replaces the plugin's fixture, which would apply the migrations in each process. Without the fixture `services`,
    which tells the tests that use the cluster or processes from those that only use the database.
    """
    with django_db_blocker.unblock():
        template_database.create_database(read_services()["database_url"])


@pytest.fixture(scope="session", autouse=True)
def cheap_where_nobody_looks() -> Iterator[None]:
    with economy():
        yield


@pytest.fixture(scope="session", autouse=True)
def rights_of_each_process() -> Iterator[None]:
    with database_roles.rights_of_processes():
        yield


@pytest.fixture(scope="session", autouse=True)
def what_the_contract_says() -> Iterator[None]:
    with contract.kept():
        yield


# ---- services ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def services() -> dict[str, Any]:
    return read_services()


@pytest.fixture(scope="session")
def admin(services: dict[str, Any]) -> Api:
    """An independent client with all rights: it reads the cluster itself, not the portal's view of it. On a busy
    machine the API server takes more than ten seconds to delete all of fifty Jobs.
    """
    return Api(services["kubeconfigs"]["admin"], timeout_s=60)


@pytest.fixture(scope="session")
def kube_worker(services: dict[str, Any]) -> Kube:
    """The portal's client with exactly the worker's rights."""
    return Kube(services["kubeconfigs"]["worker"])


@pytest.fixture(scope="session")
def kube_watcher(services: dict[str, Any]) -> Kube:
    return Kube(services["kubeconfigs"]["watcher"])


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> str:
    """Eight characters for names in the cluster. No other test has them, in this process or in a parallel one."""
    return hashlib.sha256(f"{request.node.nodeid} {os.getpid()}".encode()).hexdigest()[:8]


@pytest.fixture(autouse=True)
def guesses_of_its_own(monkeypatch: pytest.MonkeyPatch, unique: str) -> None:
    """Gives each test its own prefix in Redis, which outlives a test: failed sign-ins as Alice do not delay the next
    test.
    """
    monkeypatch.setattr(login_backoff, "PREFIX", f"sign-in:{unique}")


@pytest.fixture
def whole_hardware(admin: Api) -> Iterator[None]:
    """For tests that need the only unit of a scarce resource: they run one at a time, each after the previous test's
    pods.
    """
    with alone("turn"):
        wait_until(lambda: not any(map(_holds_scarce, admin.list("v1/pods"))), within_s=60, what="the unit is free")
        yield


@contextmanager
def alone(what: str) -> Iterator[None]:
    """Holds a lock that only one process of this run can have at a time."""
    with Path(os.environ[SERVICES_VARIABLE]).with_suffix(f".{what}").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def _holds_scarce(pod: dict[str, Any]) -> bool:
    sizes = [container.get("resources", {}).get("limits", {}) for container in pod["spec"]["containers"]]
    return any(SCARCE in limits for limits in sizes)


@pytest.fixture
def cordons_alone() -> Iterator[None]:
    """Tests that cordon many nodes, and tests of scheduler messages that expect no cordoned node, run one at a time."""
    with alone("cordons"):
        yield


@pytest.fixture
def clean_cluster(admin: Api, unique: str) -> Iterator[None]:
    """Removes what the test left in the cluster, found by its unique name."""
    yield
    remove_from_cluster(admin, unique)


@pytest.fixture(scope="session")
def running_doors(
    django_db_setup: None, tmp_path_factory: pytest.TempPathFactory, services: dict[str, Any]
) -> Iterator[Doors]:
    """One doors process for the tests of all folders: it keeps no connection and no state of a test for more than
    seconds.
    """
    log_path = tmp_path_factory.mktemp("doors") / "doors.log"
    port = free_port()
    environment = {
        **process_environment("doors"),
        "PORTAL_KUBECONFIG": services["kubeconfigs"]["doors"],
        "NOTEBOOKS_DOMAIN": NOTEBOOKS,
        "PORTAL_URL": "http://portal.localhost:8000",
        "ALLOWED_HOSTS": "*",
        "PGAPPNAME": IN_DATABASE,
    }
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "portal.asgi:application",
        "--port",
        str(port),
        "--timeout-keep-alive",
        "75",
        "--log-level",
        "warning",
    ]
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    found = Doors(port, process.pid)

    def answers() -> bool:
        try:
            return found.get("/livez")[0] == 200
        except OSError:
            return False

    try:
        wait_until(answers, within_s=60, what="doors answer", story=log_path.read_text)
        yield found
    finally:
        process.terminate()
        process.wait(15)


# ---- people and teams --------------------------------------------------------------------------------------------


@pytest.fixture
def alice(db: None) -> User:
    return make.user("Alice")


@pytest.fixture
def bob(db: None) -> User:
    return make.user("Bob")


@pytest.fixture
def charlie(db: None) -> User:
    return make.user("Charlie")


@pytest.fixture
def dana(db: None) -> User:
    """Dana is an approver of all classes."""
    return make.approver("Dana")


@pytest.fixture
def olga(db: None) -> User:
    return make.user("Olga", roles=[Role.OPERATOR, Role.ADMIN])


@pytest.fixture
def cluster(db: None, unique: str) -> Cluster:
    """The only cluster. It has a cohort of its own, so that tests do not lend units to each other."""
    return Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost", cohort=f"gpu-portal-{unique}")


@pytest.fixture
def team_a(cluster: Cluster, alice: User, bob: User, unique: str) -> Tenant:
    """Team A with its namespace `team-a-<unique>`; Alice owns it, Bob is a member."""
    tenant = make.tenant(cluster, slug="team-a", namespace=f"team-a-{unique}")
    make.member(tenant, alice, Membership.Role.OWNER)
    make.member(tenant, bob, Membership.Role.MEMBER)
    return tenant


@pytest.fixture
def namespace_a(team_a: Tenant) -> Namespace:
    return team_a.namespaces.get()


@pytest.fixture
def a100(cluster: Cluster, unique: str) -> GpuClass:
    """A class of whole A100 GPUs of the simulated hardware. Its slug is unique because flavors are cluster-wide."""
    return make.gpu_class(cluster, slug=f"a100-{unique}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects without garbage collection, which would visit what is collected so far again and again, a third of the
    time. Then freezes what was collected: otherwise each full collection visits all of it, which takes 0.3 s.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out tests of a real node where there is none, and orders the files."""
    if "real_node" not in read_services():
        left_out = [item for item in items if item.get_closest_marker("real_node")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items[:] = in_turn(items)
