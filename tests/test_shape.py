"""The shape of the project: import contracts, migrations, order of time-outs, Events, no stranger gets in."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.shortcuts import resolve_url
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass
from tenants.models import Namespace, Tenant
from tenants.requests import actions
from tenants.requests.types import RequestedLine
from tests.support.http.contract import query_of
from tests.support.http.routes import all_routes, filled
from tests.support.rows import make, running

ROOT = Path(__file__).parent.parent


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name]


def test_apps_import_downwards_only() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_pure_modules_know_no_database() -> None:
    """Policies, phases, manifests and calculations take values and give values; no contract can say `django.db`."""
    pure = [
        *ROOT.glob("*/policy.py"),
        *ROOT.glob("*/phase.py"),
        *(ROOT / "cluster" / "manifests").glob("*.py"),
        *(ROOT / "cluster" / name for name in ("names.py", "specs.py", "run_spec.py", "records.py", "observed.py")),
        *(ROOT / "catalog" / "discovery").glob("*.py"),
        *(ROOT / "catalog" / name for name in ("findings.py", "checks.py", "node_checks.py", "queue_checks.py")),
        *(ROOT / "catalog" / "contract").glob("*.py"),
        *(ROOT / "catalog" / name for name in ("file.py", "difference.py", "validity.py", "cel.py", "mig.py")),
        *(ROOT / "catalog" / name for name in ("advice.py", "needs.py", "products.py", "images.py", "failures.py")),
        *(
            ROOT / "tenants" / name
            for name in ("promises.py", "entitlements.py", "joint.py", "triage.py", "working_days.py")
        ),
        *(ROOT / "tenants" / name for name in ("rule_policy.py", "deputy_policy.py", "line_policy.py")),
        *(ROOT / "workloads" / "explain").glob("*.py"),
        *(ROOT / "workloads" / name for name in ("progress.py", "seen.py", "ending.py")),
    ]
    impure = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in pure
        for name in imported(path)
        if name.startswith(("django.db", "kubernetes", "psycopg", "cluster.client.kube"))
    ]
    assert len(pure) > 12
    assert impure == []


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.django_db
def test_models_and_migrations_agree() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def test_time_outs_are_ordered() -> None:
    """A request ends before a reconcile's budget, that before the task is killed, that before the lease lapses."""
    order = [
        settings.KUBE_TIMEOUT_S,
        settings.RECONCILE_BUDGET_S,
        settings.TASK_LIMIT_S,
        settings.LEASE_S,
        settings.RESYNC_S,
    ]
    assert order == sorted(set(order))
    # The last write may begin just before the budget ends.
    assert settings.RECONCILE_BUDGET_S + settings.KUBE_TIMEOUT_S < settings.TASK_LIMIT_S


def test_no_module_is_longer_than_400_lines() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in tracked_files()
        if path.suffix == ".py" and not {"migrations", "tests"} & set(path.parts) and path.exists()
        if (count := len(path.read_text().splitlines())) > 400
    }
    assert long == {}


def test_no_file_names_a_package_index() -> None:
    """Lock files and images leave the choice of an index to the machine that installs."""
    # Written in two halves, so that this file does not name one either.
    hosts = ["files.python" + "hosted.org", "pypi" + ".org", "proxy.golang" + ".org", "registry.npmjs" + ".org"]
    found = []
    for path in tracked_files():
        if not path.is_file() or path.stat().st_size > 2_000_000:
            continue
        text = path.read_bytes()
        found += [f"{path.relative_to(ROOT)}: {host}" for host in hosts if host.encode() in text]
    assert found == []


# ---- every action writes one Event -----------------------------------------------------------------------------


# And verbs of accounts that record, with which others end theirs.
RECORDING = ("record", "create_token", "end_token")


def test_every_action_that_someone_asks_for_records_an_event() -> None:
    """`by=` is who asks; such a transaction, in any module, reaches `record`, itself or by what it calls there."""
    found, silent = 0, []
    # desk joins apps and writes by their actions alone.
    apps = [ROOT / app for app in ("accounts", "catalog", "tenants", "workloads")]
    for path in (path for app in apps for path in sorted(app.glob("*.py"))):
        functions = {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
        for name, node in functions.items():
            if name.startswith("_") or not any(argument.arg == "by" for argument in node.args.kwonlyargs):
                continue
            if path.name != "actions.py" and "transaction.atomic" not in map(ast.unparse, node.decorator_list):
                continue
            found += 1
            if not reaches_record(node, functions, seen=set()):
                silent.append(f"{path.parent.name}.{name}")
    assert found >= 40, f"{found} actions were found: this test looks in the wrong place"
    assert silent == []


def reaches_record(node: ast.FunctionDef, functions: dict[str, ast.FunctionDef], *, seen: set[str]) -> bool:
    seen.add(node.name)
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in RECORDING:
            return True
        if name in functions and name not in seen and reaches_record(functions[name], functions, seen=seen):
            return True
    return False


# ---- the outsider ------------------------------------------------------------------------------------------------

# Pages that anybody may open without an account, and why.
OPEN_TO_ALL = {
    "login": "the way in",
    "password-code": "the way to a password, with a code",
    "oidc-begin": "the way in by an issuer, not there without one",
    "oidc-back": "believes who began to sign in and brings what the issuer says, nobody else",
    "livez": "a load balancer asks",
    "readyz": "a load balancer asks",
    "logout": "ends the session of who asks, if there is one",
    "theme": "a cookie in the browser of who asks",
    "api-docs": "describes the API, holds no data",
    "api-schema": "describes the API, holds no data",
}
FORM = "application/x-www-form-urlencoded"
METHODS = ("GET", "POST", "DELETE")


@pytest.mark.django_db
def test_nobody_gets_in_without_signing_in(team_a: Tenant) -> None:
    """Pages send to the login page, the API says 401; both before they look at the method, the path or the body."""
    values = {"tenant": "team-a", "slug": "team-a", "name": "one"}
    login = resolve_url(settings.LOGIN_URL)
    let_in, checked = {}, 0
    for route, pattern in all_routes():
        if pattern.name in OPEN_TO_ALL or route.startswith("static"):
            continue
        for method in METHODS:
            response = Client().generic(method, filled(route, values))
            sent_to = response.headers.get("Location", "").partition("?")[0]
            checked += 1
            if response.status_code != 401 and (response.status_code, sent_to) != (302, login):
                let_in[f"{method} {route}"] = (response.status_code, sent_to)
    assert let_in == {}
    assert checked > 100


@pytest.mark.django_db
def test_a_stranger_gets_404_for_everything_of_a_tenant(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, bob: User, charlie: User
) -> None:
    """Walks the URL map: every route to something of a tenant answers a signed-in stranger as if it did not exist."""
    make.tenant(namespace_a.cluster, slug="team-c", namespace=f"{namespace_a.name}-c")
    make.member(Tenant.objects.get(slug="team-c"), charlie)
    running.workload(namespace_a, a100, name="one", by=alice)
    line = RequestedLine(a100.slug, 1, timezone.now(), timezone.now() + timedelta(days=9))
    filed = actions.file_request("team-a", lines=[line], justification="x", by=Actor(alice, "page"))
    as_json = json.dumps({"lines": [{"id": filed.lines.get().pk, "approve": False, "reason": "No."}]})
    client = Client()
    client.force_login(charlie)
    events = Event.objects.count()
    seen, reached = {}, set()
    for route, _pattern in all_routes():
        named = ("tenant>", "requests/<", "workloads/<", "volumes/<")
        if not any(part in route for part in named):
            continue
        values = {"tenant": "team-a", "name": "one", "pk": str(filed.pk if "requests/<" in route else bob.pk)}
        for method in METHODS:
            path = filled(route, values)
            if route.startswith("api/"):
                path += query_of(method, route, tenant="team-a")
                status = client.generic(method, path, as_json, content_type="application/json").status_code
            else:
                status = client.generic(method, path, "confirm=one", content_type=FORM).status_code
            if status == 404:
                reached.add(route)
            elif status != 405:
                seen[f"{method} {route}"] = status
        if route not in reached:
            seen[route] = 405
    assert seen == {}
    assert len(reached) >= 20
    assert Event.objects.count() == events
