"""Links, commands, flags, variables, addresses and codes in the documentation exist; its examples work."""

from __future__ import annotations

import ast
import configparser
import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.core.management import call_command
from django.urls import Resolver404, resolve
from django.utils import timezone
from rest_framework import exceptions

from accounts.models import Scope, User
from cluster.models import Cluster, MirrorEpoch, MirrorKind
from devcluster.__main__ import _parser
from devcluster.cli.bench import _find, _table
from devcluster.cli.testing import soak_modules
from devcluster.demo import scenarios
from portal.core.codes import CODES
from portal.urls import urlpatterns
from tenants.models import ApproverFor, Tenant

ROOT = Path(__file__).parent.parent
FIRST = [ROOT / name for name in ("README.md", "CONTRIBUTING.md") if (ROOT / name).exists()]
PAGES = [*FIRST, ROOT / "deploy" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DECISIONS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
LIST_OF_DECISIONS = ROOT / "docs" / "adr" / "README.md"
HEADINGS = ("Context", "Decision", "Drawbacks", "We would know it is wrong if")
DRAWINGS = sorted((ROOT / "docs" / "img").glob("*.svg"))
APPS = ("accounts", "catalog", "cluster", "tenants", "workloads", "usage", "operations", "desk", "portal")


def name_of(path: object) -> str:
    return str(path.relative_to(ROOT)) if isinstance(path, Path) else str(path)


def section(page: str, heading: str) -> str:
    """The text from a second-level heading to the next one."""
    text = (ROOT / page).read_text()
    assert f"\n## {heading}\n" in text
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


# ---- links and pictures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", [*PAGES, *DECISIONS, LIST_OF_DECISIONS], ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", document.read_text())
    inner = [link.partition("#")[0] for link in links if not link.startswith(("http://", "https://", "#"))]
    assert [link for link in inner if not (document.parent / link).exists()] == []


def test_pictures_are_shown_and_small() -> None:
    readme = (ROOT / "README.md").read_text()
    pictures = [one for one in (ROOT / "docs" / "img").iterdir() if one not in DRAWINGS]
    assert [one.name for one in pictures if f"(docs/img/{one.name})" not in readme] == []
    assert [one.name for one in pictures if not 20_000 < one.stat().st_size <= 300_000] == []


@pytest.mark.parametrize("drawing", DRAWINGS, ids=name_of)
def test_drawings_are_text_and_bring_nothing_along(drawing: Path) -> None:
    """Drawings keep their letters as text, work in light and dark, and load nothing from elsewhere."""
    text = drawing.read_text()
    assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert len(text) <= 40_000
    assert "prefers-color-scheme: dark" in text
    assert re.findall(r"href|url\(|@import|@font-face|<image|<script", text) == []
    assert any(f"(img/{drawing.name})" in page.read_text() for page in PAGES)


def test_every_page_can_be_reached_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"(docs/{page.name})" not in readme] == []


def test_files_and_folders_named_in_the_texts_exist() -> None:
    """Words in backticks that look like paths of ours."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
    missing = []
    for page in [*PAGES, *DECISIONS]:
        for word in re.findall(r"`([\w./*-]+)`", page.read_text()):
            if word.split("/")[0] not in folders or "/" not in word:
                continue
            if not any(list(base.glob(word.rstrip("/"))) for base in (ROOT, page.parent)):
                missing.append(f"{name_of(page)}: {word}")
    assert missing == []


def missing_files(text: str, beside: Path) -> list[str]:
    """Words in backticks that end like one of the project's files or folders, and exist neither at the root, nor beside
    the page, nor, as a name alone, anywhere in the project.
    """
    words = re.findall(r"`((?![./])[\w.*-]+(?:/[\w.*-]+)*(?:/|\.(?:py|html|md|svg|toml|css|js)))`", text)
    missing = []
    for word in dict.fromkeys(words):
        is_name_alone = "/" not in word.rstrip("/")
        found = any(list(base.glob(word.rstrip("/"))) for base in (ROOT, beside))
        if not found and not (is_name_alone and any(named_so(word))):
            missing.append(word)
    return missing


def named_so(word: str) -> Iterator[Path]:
    for folder in (*APPS, "cli", "deploy", "devcluster", "docs", "static", "templates", "tests", "tools"):
        yield from (ROOT / folder).rglob(word.rstrip("/"))


@pytest.mark.parametrize("document", [*FIRST, ROOT / "docs" / "architecture.md", *DECISIONS], ids=name_of)
def test_every_file_that_a_guide_or_a_decision_names_exists(document: Path) -> None:
    assert missing_files(document.read_text(), document.parent) == []


def test_a_file_that_is_gone_is_seen() -> None:
    text = (
        "`workloads/phase.py`, `phase.py`, `desk/queries/`, `policy.py`, `templates/desk/home/`, `portal/nothing.html`"
    )
    assert missing_files(text, ROOT) == ["workloads/phase.py", "desk/queries/", "portal/nothing.html"]


# ---- packages and folders --------------------------------------------------------------------------------------

# Files that Django looks for at the root of an app; and the files at the root of two packages.
NO_ROOMS = {
    "admin",
    "tasks",
    "management",
    "urls",
    "api_urls",
    "wsgi",
    "asgi",
    "celery",
    "templatetags",
    "__main__",
    "bootstrap",
}


def rooms_by_contract() -> dict[str, list[str]]:
    """App → its rooms from top to bottom, in the order of .importlinter."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    return {
        contract["containers"]: [room for room in re.findall(r"\w+", contract["layers"]) if room not in NO_ROOMS]
        for contract in (contracts[name] for name in contracts.sections())
        if "containers" in contract
    }


@pytest.mark.parametrize("app", sorted(rooms_by_contract()))
def test_every_room_is_in_the_tables_and_in_the_drawing(app: str) -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.split(f"\n### {app}:")[1].split("\n## ")[0].split("\n### ")[0]
    rooms = rooms_by_contract()[app]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == rooms
    drawn = re.findall(r'class="(name|word)">([^<]+)<', (ROOT / "docs" / "img" / "architecture.svg").read_text())
    floor = drawn[drawn.index(("name", app)) + 1 :][: len(rooms) + 1]
    assert [word for kind, word in floor if kind == "word"] == rooms


def test_examples_in_python_import_what_is_there() -> None:
    blocks = [block for page in PAGES for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)]
    imports = [node for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.ImportFrom)]
    names = [(str(node.module), alias.name) for node in imports for alias in node.names]
    assert [pair for pair in names if not hasattr(import_module(pair[0]), pair[1])] == []
    assert len(names) > 5


# ---- commands --------------------------------------------------------------------------------------------------


def commands() -> list[str]:
    texts = "\n".join(page.read_text() for page in PAGES)
    found = re.findall(r"python3 run\.py ([^`\n#]+)", texts)
    return sorted({line.strip() for line in found})


@pytest.mark.parametrize("line", commands())
def test_commands_and_flags_exist(line: str) -> None:
    arguments, rest = _parser().parse_known_args(shlex.split(line))
    assert not rest or arguments.passes_on


def test_flags_named_alone_exist() -> None:
    """For example `--port` in a sentence."""
    known = {flag for command in _commands().values() for flag in command}
    named = set(re.findall(r"`(--[a-z-]+)", (ROOT / "README.md").read_text()))
    assert named
    assert named - known == set()


def _commands() -> dict[str, list[str]]:
    (commands,) = [action for action in _parser()._actions if hasattr(action, "choices") and action.choices]
    assert isinstance(commands.choices, dict)
    return {
        name: [flag for action in parser._actions for flag in action.option_strings]
        for name, parser in commands.choices.items()
    }


def test_named_benchmarks_soaks_and_hardware_exist() -> None:
    _find()
    hardware = {path.stem for path in (ROOT / "devcluster" / "hardware").glob("*.yaml")}
    texts = "\n".join(page.read_text() for page in [*PAGES, *DECISIONS])
    assert set(re.findall(r"`run\.py bench ([a-z]+)`", texts)) <= _table.runs.keys()
    assert set(re.findall(r"run\.py soak ([a-z]+)`", texts)) <= soak_modules().keys()
    assert set(re.findall(r"--hardware ([a-z]+)", texts)) <= hardware
    assert all(scenarios.scenario_named(name).name == name for name in re.findall(r"--scenario ([a-z]+)", texts))


# ---- environment variables and metrics -------------------------------------------------------------------------


def read_by_settings() -> dict[str, tuple[bool, object]]:
    """Variable → (is it a secret, its default; ... where the default is computed, None where it is required)."""
    found: dict[str, tuple[bool, object]] = {}
    for node in ast.walk(ast.parse((ROOT / "portal" / "settings.py").read_text())):
        if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
            continue
        function = node.func
        if isinstance(function, ast.Name) and function.id == "former_keys":
            found[f"{node.args[0].value}_FALLBACKS"] = (True, "")
        is_secret = isinstance(function, ast.Name) and function.id == "secret"
        is_env = (
            isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "env"
        )
        if not is_secret and not is_env:
            continue
        default: object = None
        for keyword in node.keywords:
            if keyword.arg == "default":
                try:
                    default = ast.literal_eval(keyword.value)
                except ValueError:
                    default = ...
        found[str(node.args[0].value)] = (is_secret, default)
    return found


def documented() -> dict[str, str]:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.+?) \|", section("docs/operators.md", "Environment"), re.MULTILINE)
    return dict(rows)


def test_every_variable_that_settings_read_is_documented_and_no_other() -> None:
    assert documented().keys() == read_by_settings().keys()
    assert len(documented()) > 15


@pytest.mark.parametrize("name", sorted(read_by_settings()))
def test_defaults_are_as_documented(name: str) -> None:
    is_secret, default = read_by_settings()[name]
    told = documented()[name]
    assert ("secret" in told) is is_secret
    match default:
        case None:
            assert told.startswith("required")
        case "":
            assert told.startswith("empty")
        case bool() | int() | str():
            assert f"`{str(default).lower() if isinstance(default, bool) else default}`" in told
        case [*hosts] if len(hosts) < 3:
            assert f"`{','.join(map(str, hosts))}`" in told
        case _:
            assert told, "a default that is computed is told in words"


def test_the_gateways_variables_are_as_documented() -> None:
    told = section("docs/operators.md", "Environment").split("The gateway reads these")[1]
    read = re.findall(r"\{\$([A-Z_]+)", (ROOT / "deploy" / "Caddyfile").read_text())
    assert set(re.findall(r"`([A-Z_]{5,})`", told)) == set(read)


def test_metrics_and_alerts_are_as_documented() -> None:
    text = section("docs/operators.md", "Probes, metrics, alerts")
    parts = (
        "portal/ops/metrics.py",
        "portal/web/admission/middleware.py",
        "desk/health/metrics.py",
        "desk/health/cluster_metrics.py",
        "workloads/status/explain/unexplained.py",
    )
    code = "".join((ROOT / part).read_text() for part in parts)
    assert set(re.findall(r"`(portal_\w+)`", text)) == set(re.findall(r'"(portal_\w+)"', code))
    file = ROOT / "deploy" / "monitoring" / "rules" / "portal-alerts.yaml"
    rules = yaml.safe_load(file.read_text())["groups"][0]["rules"]
    assert set(re.findall(r"`(Portal\w+)`", text)) <= {rule["alert"] for rule in rules}


def test_alerts_for_gpus_are_as_documented() -> None:
    text = section("docs/operators.md", "Metrics, dashboards and alerts")
    folder = ROOT / "deploy" / "monitoring"
    rules = yaml.safe_load((folder / "rules" / "gpu-alerts.yaml").read_text())["groups"][0]["rules"]
    table = re.findall(r"^\| (`(?:Gpu|Monitoring)\w+`.*?) \|", text, re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(table)) == [rule["alert"] for rule in rules]
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml")} - {"kustomization.yaml"}
    assert {name for name in re.findall(r"`([\w/-]+\.yaml)`", text) if "deploy/" not in name} == files


# ---- API -------------------------------------------------------------------------------------------------------


def addresses() -> list[tuple[str, str]]:
    """(method, path) of the tables, with a value for each parameter."""
    found = re.findall(
        r"^\| `(GET|POST|PUT|PATCH|DELETE) (/[^`?]+)` \|", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE
    )
    return [(method, re.sub(r"<\w+>", "1", path)) for method, path in found]


@pytest.mark.parametrize(("method", "path"), addresses())
def test_addresses_are_in_the_url_map(method: str, path: str) -> None:
    view = getattr(resolve(path).func, "cls", None)  # None: a plain function
    assert view is None or hasattr(view, method.lower()), f"{path} does not take {method}"


def test_every_address_of_the_api_is_documented() -> None:
    routes = {
        "/" + re.sub(r"<[^>]+>", "1", str(one.pattern)) for one in urlpatterns if str(one.pattern).startswith("api/v1/")
    }
    assert routes - {path for _method, path in addresses()} == set()


def test_addresses_in_examples_are_in_the_url_map() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    paths = set(re.findall(r"(?:\$PORTAL|localhost:8000)(/[\w/.-]+)", text))
    wrong = []
    for path in paths:
        try:
            resolve(path)
        except Resolver404:
            wrong.append(path)
    assert paths
    assert wrong == []


THEIRS = (exceptions.MethodNotAllowed, exceptions.UnsupportedMediaType, exceptions.NotAcceptable)


def test_codes_are_in_the_code() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| (\d{3}) \|", section("docs/api.md", "Errors"), re.MULTILINE)
    theirs = {one.default_code: one.status_code for one in THEIRS}
    ours = codes()
    for code, status in rows:
        if code in theirs:
            assert int(status) == theirs[code]
        else:
            assert code in ours, f"no code {code}"
            assert int(status) in ours[code], f"{code} has status {ours[code]}"
    assert len(rows) > 40


def test_every_code_is_listed_and_documented_and_no_other() -> None:
    told = set(re.findall(r"^\| `([a-z_]+)` \| \d{3} \|", section("docs/api.md", "Errors"), re.MULTILINE))
    used = codes().keys() | {one.default_code for one in THEIRS}
    assert used - set(CODES) == set(), "not in portal/core/codes.py"
    assert set(CODES) - used == set(), "nobody is refused with it any more"
    assert used - told == set(), "not in docs/api.md"
    assert list(CODES) == sorted(set(CODES))


def codes() -> dict[str, set[int]]:
    """Code → statuses, from every Refusal, refuse() and constraint_sentence() of the apps, and from the gateway."""
    found: dict[str, set[int]] = {}
    gateway = (ROOT / "deploy" / "Caddyfile").read_text()
    for status, code in re.findall(r"^\t+(\d{3}|default) ([a-z_]+) \"", gateway, re.MULTILINE):
        found.setdefault(code, set()).update((502, 503, 504) if status == "default" else (int(status),))
    for path in (path for app in APPS for path in (ROOT / app).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            function = node.func.id if isinstance(node.func, ast.Name) else ""
            if function not in ("Refusal", "refuse", "constraint_sentence"):
                continue
            is_constraint = function == "constraint_sentence"
            values = [getattr(argument, "value", None) for argument in node.args]
            status = 409 if is_constraint else (values[3] if len(values) > 3 else 422)
            for keyword in node.keywords:
                if keyword.arg == "status":
                    status = getattr(keyword.value, "value", status)
            code = node.args[int(is_constraint) : int(is_constraint) + 1]
            for one in [part for argument in code for part in _either(argument)]:
                if isinstance(one, str) and isinstance(status, int):
                    found.setdefault(one, set()).add(status)
    return found


def _either(argument: ast.expr) -> list[object]:
    """`"a" if so else "b"` gives both."""
    parts = [argument.body, argument.orelse] if isinstance(argument, ast.IfExp) else [argument]
    return [getattr(part, "value", None) for part in parts]


def test_scopes_are_as_documented() -> None:
    told = re.findall(r"^\| `([a-z]+)` \| [^\d]", section("docs/api.md", "Authentication"), re.MULTILINE)
    assert told == [str(scope) for scope in Scope]


# ---- first steps -----------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_first_steps_work() -> None:
    """Runs the steps of docs/operators.md on an empty database; the watcher has listed an empty cluster."""
    text = section("docs/operators.md", "Install")
    steps = [line.split()[2:] for line in re.findall(r"^python manage\.py .+$", text, re.MULTILINE)]
    assert [step[1] for step in steps] == ["settle", "propose", "accept"]
    call_command(*steps[0])
    cluster = Cluster.objects.get(name=settings.CLUSTER_NAME)
    now = timezone.now()
    MirrorEpoch.objects.create(cluster_id=cluster.pk, epoch=1, heard_at=now)
    for kind in ("Node", "ResourceSlice"):
        MirrorKind.objects.create(cluster_id=cluster.pk, kind=kind, epoch=1, listed_at=now, heard_at=now)
    for step in steps[1:]:
        call_command(*step)
    (people,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(people, {})
    assert Tenant.objects.get(slug="vision").memberships.get().user.email == "alice@example.org"
    assert ApproverFor.objects.get().user == User.objects.get(email="dana@example.org")


# ---- design decisions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", DECISIONS, ids=name_of)
def test_decisions_have_their_four_parts_on_one_page(document: Path) -> None:
    text = document.read_text()
    found = [text.find(f"**{heading}") for heading in HEADINGS]
    assert found == sorted(found)
    assert min(found) > 0
    assert len(text.split()) <= 450
    assert text.startswith(f"# {int(document.name[:4])}. ")


def test_decisions_are_numbered_without_gaps() -> None:
    assert [int(page.name[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))


def test_the_list_of_decisions_is_complete() -> None:
    """Number, title, file and one line of each."""
    rows = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \| (.+) \|$", LIST_OF_DECISIONS.read_text(), re.MULTILINE)
    titles = [(page.name, page.read_text().partition("\n")[0]) for page in DECISIONS]
    assert [(name, f"# {number}. {title}") for number, title, name, _line in rows] == titles
    assert all(30 < len(line) <= 120 and line.endswith(".") for *_, line in rows)


# ---- paths of the author's machine -----------------------------------------------------------------------------


def test_no_text_names_a_place_on_the_machine_that_wrote_it() -> None:
    """tests/test_shape.py looks for package index hosts in all files."""
    places = re.compile(r"(?<![\w.])/(?:work|root|home/(?!work\b)\w+)(?:/|\b)|\.\./shared")
    found = [
        f"{name_of(page)}: {match.group()}"
        for page in [*PAGES, *DECISIONS, LIST_OF_DECISIONS]
        for match in places.finditer(page.read_text())
    ]
    assert found == []
