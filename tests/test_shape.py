"""The shape of the project: import contracts, rooms, roles by file name, names, migrations, time-outs, Events.

`.importlinter` says which app and which room may import which. Rules that a contract cannot express are tested here,
for every module at any depth. Each rule is a pure function, and a planted violation shows that it works.
"""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import call_command

from tests.support.source import APPS, PACKAGES, ROOT, import_graph, named, product_modules, tracked_files

# The role that a file name gives a module, and its level: a role may import lower roles and its equals.
RANKS = {
    "models": 0,
    "types": 0,
    "policy": 1,
    "queries": 2,
    "actions": 3,
    "reconcile": 3,
    "forms": 4,
    "serializers": 4,
    "shown": 4,
    "views": 5,
    "api": 5,
    "admin": 5,
    "tasks": 5,
}
EDGES = frozenset({"views", "api", "admin", "tasks"})
# Words and figures made of rows: a query of another room may return them unchanged.
AS_IMPORTED = {**RANKS, "shown": RANKS["queries"]}
Graph = Mapping[str, Iterable[str]]


def test_apps_and_rooms_import_downwards_only() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


# ---- imports between module roles --------------------------------------------------------------------------------


def role_violations(graph: Graph) -> list[str]:
    """Imports of a higher role, of an edge by an edge, or of an action of the same app by a reconciler."""
    found = []
    for module, imported in graph.items():
        for other in imported:
            app, role, other_role = module.partition(".")[0], _role(module), _role(other)
            if app not in APPS or role not in RANKS or other_role not in RANKS:
                continue
            is_within = other.startswith(f"{app}.")
            is_edge_of_edge = {role, other_role} <= EDGES and not _is_found_by_django(module, role, other_role)
            is_verb_of_reconciler = is_within and {role, other_role} == {"actions", "reconcile"}
            if AS_IMPORTED[other_role] > RANKS[role] or is_edge_of_edge or is_verb_of_reconciler:
                found.append(f"{module} imports {other}")
    return sorted(found)


def _role(module: str) -> str:
    return module.rpartition(".")[2]


def _is_found_by_django(module: str, role: str, other_role: str) -> bool:
    """Django looks for `<app>.admin`, which imports the admin classes of the rooms."""
    return role == other_role == "admin" and module.count(".") == 1


def test_each_role_knows_those_below_it() -> None:
    assert role_violations(import_graph()) == []


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("tenants.requests.queries", "tenants.requests.actions"),
        ("workloads.storage.views", "workloads.storage.api"),
        ("catalog.classes.admin", "catalog.images.admin"),
        ("workloads.runs.policy", "workloads.runs.queries"),
        ("workloads.storage.reconcile", "workloads.storage.actions"),
        ("tenants.models", "tenants.members.policy"),
    ],
)
def test_a_planted_import_is_seen(module: str, imported: str) -> None:
    assert role_violations({module: [imported]}) == [f"{module} imports {imported}"]


def circles(graph: Graph) -> list[list[str]]:
    """Sets of modules that import each other, by Tarjan's algorithm."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_modules: list[str] = []
    found = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        open_modules.append(module)
        for other in graph.get(module, ()):
            if other not in number:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in open_modules:
                lowest[module] = min(lowest[module], number[other])
        if lowest[module] == number[module]:
            at = open_modules.index(module)
            circle = open_modules[at:]
            del open_modules[at:]
            if len(circle) > 1:
                found.append(sorted(circle))

    for module in graph:
        if module not in number:
            visit(module)
    return found


def test_no_modules_import_each_other() -> None:
    """Imports for types and inside functions count."""
    assert circles(import_graph()) == []


def test_a_planted_circle_is_seen() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}) == [["a", "b", "c"]]


# ---- imports of pure modules ----------------------------------------------------------------------------------------

IMPURE = ("django.db", "kubernetes", "psycopg", "redis", "cluster.client.kube")
# Rooms and modules without side effects, in addition to every `policy` and every `types`.
PURE = (
    "cluster/manifests",
    "cluster/mirror/records",
    "cluster/reads/observed.py",
    "catalog/contract",
    "catalog/guide",
    "catalog/discovery",
    "catalog/checks",
    "catalog/classes/validation",
    "catalog/classes/life_cycle.py",
    "catalog/images/compatibility.py",
    "catalog/images/image_references.py",
    "catalog/file",
    "tenants/grants/promises.py",
    "tenants/grants/combined_promises.py",
    "tenants/provisioning/entitlements.py",
    "tenants/onboarding/imports/sources",
    "tenants/requests/decisions/triage.py",
    "tenants/requests/escalation/working_days.py",
    "workloads/status/explain",
    "workloads/status/phase.py",
    "workloads/status/progress.py",
    "workloads/status/outcome.py",
    "workloads/core/observation.py",
    *(
        f"desk/health/preflight/{name}.py"
        for name in ("admission", "existing", "kueue", "network", "nodes", "platform")
    ),
    "desk/health/preflight/report.py",
    "desk/health/preflight/trials.py",
    "portal/ui",
)


def pure_modules() -> list[Path]:
    listed = [ROOT / name for name in PURE]
    assert all(path.exists() for path in listed)
    inside = [one for path in listed for one in (path.rglob("*.py") if path.is_dir() else [path])]
    pure = [path for path in inside if path.stem not in ("queries", "actions", "admin", "models")]
    by_role = [path for path in product_modules() if path.stem in ("policy", "types")]
    return sorted({*pure, *by_role})


def impurities(source: str) -> Iterator[str]:
    """Imports of a database, of the cluster or of Redis, and managers of models."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(IMPURE))
        elif isinstance(node, ast.ImportFrom) and node.module:
            paths = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (path for path in paths if path.startswith(IMPURE))
        elif isinstance(node, ast.Attribute) and node.attr in ("objects", "_base_manager", "_default_manager"):
            yield ast.unparse(node)


def test_pure_modules_know_no_database() -> None:
    """Policies, phases, manifests and calculations take values and return values."""
    modules = pure_modules()
    assert len(modules) > 80
    assert {named(path): list(found) for path in modules if (found := [*impurities(path.read_text())])} == {}


@pytest.mark.parametrize(
    "source",
    [
        "from django.db import connection",
        "from django import db\nfrom django.db.models import Q",
        "def may(by):\n    return Grant.objects.exists()",
        "from cluster.client.kube import Kube",
    ],
)
def test_a_planted_impurity_is_seen(source: str) -> None:
    assert list(impurities(source))


# ---- references to higher apps, also by a name in a string -----------------------------------------------------------


def upward_strings(app: str, source: str, labels: Iterable[str], reversed_names: Iterable[str]) -> list[str]:
    """Models of higher apps, as `app.Model` in a string, and their reverse names on lower models, as `name__…` in a
    look-up.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_named = node.value in labels or any(node.value.startswith(f"{name}__") for name in reversed_names)
            found += [node.value] if is_named else []
        elif isinstance(node, ast.keyword) and any(str(node.arg).startswith(f"{name}__") for name in reversed_names):
            found.append(str(node.arg))
        elif isinstance(node, ast.Attribute) and node.attr in MANAGER_METHODS and isinstance(node.value, ast.Attribute):
            found += [ast.unparse(node)] if node.value.attr in reversed_names else []
    return [f"{app}: {one}" for one in found]


MANAGER_METHODS = frozenset({"aggregate", "all", "count", "exists", "filter", "first", "get", "values", "values_list"})


def models_above(app: str) -> tuple[set[str], set[str]]:
    """Labels of models of higher apps, and the reverse names that Django adds to models of apps up to `app`."""
    above = {*APPS[APPS.index(app) + 1 :]}
    labels = {model._meta.label for name in above for model in apps.get_app_config(name).get_models()}
    added = {
        str(relation.get_accessor_name())
        for name in APPS[: APPS.index(app) + 1]
        for model in apps.get_app_config(name).get_models()
        for relation in model._meta.related_objects
        if relation.related_model._meta.app_label in above
    }
    own = {field.name for name in APPS[: APPS.index(app) + 1] for model in apps.get_app_config(name).get_models()
           for field in model._meta.get_fields() if not field.auto_created}  # fmt: skip
    return labels, added - own - {"None"}


@pytest.mark.parametrize("app", APPS[:-1])
def test_no_app_knows_one_above_by_name(app: str) -> None:
    labels, added = models_above(app)
    found = {}
    for path in product_modules():
        if path.relative_to(ROOT).parts[0] == app and (names := upward_strings(app, path.read_text(), labels, added)):
            found[named(path)] = names
    assert found == {}


def test_a_planted_name_is_seen() -> None:
    labels, added = models_above("catalog")
    assert upward_strings("catalog", 'apps.get_model("tenants.Grant")', labels, added)
    assert upward_strings("catalog", "one.grants.filter(pk=1)", labels, added)
    assert upward_strings("catalog", "filter(grants__units=1)", labels, added)


# ---- folders, sizes and names ------------------------------------------------------------------------------------

FILES_MAX = 12
LINES_MAX, LINES_MEDIAN_MAX = 400, 120
# A role stands alone as a file name: `secrets/policy.py`, not `secret_policy.py`.
SUFFIXES = tuple(f"_{role}" for role in RANKS if role != "types")


def test_no_folder_is_crowded() -> None:
    """Migrations, ADRs and mutants are lists, not rooms."""
    lists = {"migrations", "adr", "mutants", "golden"}
    files = Counter(path.parent for path in tracked_files() if not lists & {*path.parts} and path.parent != ROOT)
    assert {named(folder): count for folder, count in files.items() if count > FILES_MAX} == {}


def test_modules_are_short() -> None:
    lengths = {named(path): len(path.read_text().splitlines()) for path in product_modules()}
    assert {name: length for name, length in lengths.items() if length > LINES_MAX} == {}
    assert statistics.median(length for name, length in lengths.items() if "__init__" not in name) <= LINES_MEDIAN_MAX


def test_a_role_is_a_file_of_its_own() -> None:
    assert [named(path) for path in product_modules() if path.stem.endswith(SUFFIXES)] == []


def test_packages_say_what_is_in_the_room_and_hold_no_code() -> None:
    """`__init__` has only a docstring: everything in a room has one import path."""
    silent, busy = [], []
    for path in product_modules():
        if path.name != "__init__.py" or path.parts[-3:-1] == ("cli", "gpu_cli"):
            continue
        tree = ast.parse(path.read_text())
        busy += [named(path)] if len(tree.body) > 1 else []
        is_djangos = {"management", "templatetags"} & {*path.parts}
        silent += [named(path)] if ast.get_docstring(tree) is None and not is_djangos else []
    assert (silent, busy) == ([], [])


def test_a_class_name_is_unique_in_its_app() -> None:
    """Nested classes (choices, Meta) are named with their outer class; commands have Django's name."""
    twice = {}
    for app in PACKAGES:
        found = Counter(
            node.name
            for path in product_modules()
            if path.relative_to(ROOT).parts[0] == app and "commands" not in path.parts
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.ClassDef)
        )
        twice |= {f"{app}: {name}": count for name, count in found.items() if count > 1}
    assert twice == {}


# ---- other rules -------------------------------------------------------------------------------------------------


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
    # Celery looks once a second for tasks to kill. A longer lease keeps the rows of a vanished worker for nothing.
    assert settings.TASK_LIMIT_S + 3 <= settings.LEASE_S <= settings.TASK_LIMIT_S + 5
    # What a vanished worker had claimed is taken by another one within 25 s (tests/recovery/test_vanished.py).
    assert settings.LEASE_S + settings.SWEEP_S + 2 <= 25
    assert settings.CELERY_BEAT_SCHEDULE["sweep"]["schedule"] == settings.SWEEP_S


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


# ---- events of actions -----------------------------------------------------------------------------------------


# And actions of accounts that record an event and with which others end theirs.
RECORDING = ("record", "create_token", "end_token")


def test_every_action_that_someone_asks_for_records_an_event() -> None:
    """`by=` is the user; such a transaction, in any module, reaches `record`, directly or by a call."""
    found, silent = 0, []
    # desk joins apps and writes only by their actions.
    apps_that_write = APPS[:-1]
    modules = [path for path in product_modules() if path.relative_to(ROOT).parts[0] in apps_that_write]
    defined = {path: functions_of(path) for path in modules}
    times = Counter(name for functions in defined.values() for name in functions)
    anywhere = {name: one for functions in defined.values() for name, one in functions.items() if times[name] == 1}
    for path, functions in defined.items():
        for name, node in functions.items():
            if name.startswith("_") or not any(argument.arg == "by" for argument in node.args.kwonlyargs):
                continue
            if path.name != "actions.py" and "transaction.atomic" not in map(ast.unparse, node.decorator_list):
                continue
            found += 1
            if not reaches_record(node, {**anywhere, **functions}, seen=set()):
                silent.append(f"{named(path)}: {name}")
    assert found >= 80, f"{found} actions were found: this test looks in the wrong place"
    assert silent == []


def functions_of(path: Path) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def reaches_record(node: ast.FunctionDef, functions: Mapping[str, ast.FunctionDef], *, seen: set[str]) -> bool:
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
