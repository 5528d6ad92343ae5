"""The table has a row for every method of every address."""

from __future__ import annotations

import pytest

from cluster.models import Cluster
from tests.matrix.sweep import ROUTES, path_of
from tests.matrix.tables.api_table import API
from tests.matrix.tables.page_table import PAGES
from tests.matrix.world import World, build

pytestmark = pytest.mark.django_db
# Routes that are not in the table, and where they are tested.
ELSEWHERE = {
    "login": "the way in: tests/accounts/credentials/test_views.py",
    "oidc-begin": "the way in by an issuer, not there without one: tests/identity",
    "oidc-back": "the way back from there: tests/identity",
    "styleguide": "there while templates are written, and to nobody else: tests/portal/ui/test_styleguide.py",
    "password-code": "the way in: tests/accounts/account_setup/test_account_setup.py",
    "mfa_authenticate": "the second step of the way in: tests/accounts",
    "live": "served by doors: tests/desk/streaming/test_streaming_closed.py",
    "workload-log": "served by doors: tests/workloads/gateway/test_logs.py",
}


@pytest.fixture
def world(cluster: Cluster, unique: str) -> World:
    return build(cluster, unique)


def test_every_method_of_every_address_has_a_row(world: World) -> None:
    """An unknown method is answered with the methods that exist."""
    said: dict[str, set[str]] = {}
    for row in (*API, *PAGES):
        said.setdefault(row.route, set()).add(row.method)
    wrong = {}
    for name, route in ROUTES.items():
        if name in ELSEWHERE or route.startswith("static"):
            continue
        about = next((row.about for row in (*API, *PAGES) if row.route == name), "")
        values = world.address(about, "own", "owner") or world.address(about, "others", "owner") or {}
        answer = world.client("owner").generic("BREW", path_of(name, values))
        allowed = {method.strip() for method in answer.headers.get("Allow", "").split(",")} - {"HEAD", "OPTIONS"}
        if answer.status_code != 405 or allowed != said.get(name, set()):
            wrong[name] = (answer.status_code, sorted(allowed), sorted(said.get(name, set())))
    assert wrong == {}
    assert len(said) > 150
    assert set(ELSEWHERE) < set(ROUTES)
