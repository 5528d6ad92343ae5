"""`run.py test --changed`: which tests are near to a change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from devcluster.cli import changed
from devcluster.processes.console import UserError

TEXTS = {
    "portal/urls.py": "from desk.home import views\nfrom desk.queue import views as queue",
    "desk/home/views.py": 'from desk.home import (\n    queries,  # rows\n)\nrender("desk/home/home.html")',
    "desk/home/queries.py": "from portal.core import sql",
    "desk/queue/views.py": "import desk.home.queries",
    "desk/people/api.py": "",
    "desk/management/commands/quota.py": "",
    "portal/core/sql.py": "",
    "cli/gpu_cli/api/client.py": "",
    "cli/gpu_cli/main.py": "from gpu_cli.api import client",
    "templates/desk/home/home.html": '{% include "desk/home/_row.html" %}',
    "templates/desk/home/_row.html": "",
    "tests/conftest.py": "import portal.core.sql",
    "tests/support/fixtures.py": "",
    "tests/support/rows.py": "from desk.home import queries",
    "tests/test_docs.py": "",
    "tests/test_shape.py": "import portal.urls",
    "tests/cli/api/test_client.py": "",
    "tests/desk/conftest.py": 'pytest_plugins = ("tests.support.fixtures",)',
    "tests/desk/home/test_home.py": "from tests.support import rows",
    "tests/desk/queue/test_queue.py": "from desk.queue import views",
    "tests/e2e/test_walk.py": "from desk.home import queries",
    "tests/portal/core/test_sql.py": "def test() -> None:\n    from portal.core.sql import found",
    "tests/tenants/test_command.py": 'call_command("quota")',
}
SHAPE = "tests/test_shape.py"


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("tests/desk/home/test_home.py", {"tests/desk/home/test_home.py"}),
        ("tests/e2e/test_walk.py", {"tests/e2e/test_walk.py"}),
        ("tests/support/rows.py", {"tests/desk/home/test_home.py"}),
        ("tests/desk/conftest.py", {"tests/desk/home/test_home.py", "tests/desk/queue/test_queue.py"}),
        ("tests/support/fixtures.py", {"tests/desk/home/test_home.py", "tests/desk/queue/test_queue.py"}),
        # Who imports it, or what imports it; its room; no walk through everything.
        ("desk/home/queries.py", {"tests/desk/home/test_home.py", "tests/desk/queue/test_queue.py"}),
        ("desk/home/views.py", {"tests/desk/home/test_home.py"}),  # not whoever imports the map of all addresses
        ("portal/core/sql.py", {"tests/portal/core/test_sql.py"}),
        ("cli/gpu_cli/api/client.py", {"tests/cli/api/test_client.py"}),
        ("desk/management/commands/quota.py", {"tests/tenants/test_command.py"}),
        ("desk/people/api.py", {"tests/desk/home/test_home.py", "tests/desk/queue/test_queue.py"}),  # nothing nearer
        ("templates/desk/home/home.html", {"tests/desk/home/test_home.py"}),
        ("templates/desk/home/_row.html", {"tests/desk/home/test_home.py"}),
        ("docs/api.md", {"tests/test_docs.py"}),
        ("desk/home/gone.py", {"tests/desk/home/test_home.py"}),  # removed
        ("static/unknown.svg", set()),
    ],
)
def test_the_nearest_tests_are_chosen(path: str, near: set[str]) -> None:
    assert set(changed.select([path], TEXTS)) == near | {SHAPE}


def test_nothing_changed_leaves_the_shape() -> None:
    assert changed.select([], TEXTS) == [SHAPE]


def test_what_differs_is_committed_edited_and_new(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=tmp_path, check=True)

    git("init", "-q", "-b", "main")
    for name in ("same.py", "edited.py", "committed.py"):
        (tmp_path / name).write_text("")
    git("add", ".")
    git("commit", "-qm", "One")
    git("switch", "-qc", "branch")
    (tmp_path / "committed.py").write_text("1")
    git("commit", "-qam", "Two")
    (tmp_path / "edited.py").write_text("2")
    (tmp_path / "new.py").write_text("3")

    assert changed.since(tmp_path, "main") == {"committed.py", "edited.py", "new.py"}
    with pytest.raises(UserError, match="git does not know no-such"):
        changed.since(tmp_path, "no-such")
