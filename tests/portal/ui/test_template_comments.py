"""The comment at the head of a template names the values that it gets: modules and classes that exist."""

from __future__ import annotations

import re

import pytest

from tests.support.source import ROOT

APPS = "portal|accounts|cluster|catalog|tenants|workloads|desk"
COMMENT = re.compile(r"{% comment %}(.*?){% endcomment %}", re.DOTALL)
# Both ways of writing it: `Row of desk/home/queries.py`, `desk.home.queries.Row`.
FILE = re.compile(rf"(?:\b([A-Z]\w+) of )?\b((?:{APPS})/[\w/]+\.py)")
DOTTED = re.compile(rf"(?<![\w/])((?:{APPS})(?:\.[a-z_]+)+)\.([A-Z]\w+)")


def wrong_names(comment: str) -> list[str]:
    named = FILE.findall(comment)
    named += [(name, f"{module.replace('.', '/')}.py") for module, name in DOTTED.findall(comment)]
    return [f"{name} of {path}" for name, path in named if not _is_there(name, path)]


def _is_there(name: str, path: str) -> bool:
    file = ROOT / path
    return file.is_file() and (not name or bool(re.search(rf"^class {name}\b", file.read_text(), re.MULTILINE)))


def test_templates_name_what_exists() -> None:
    comments = {path: COMMENT.findall(path.read_text()) for path in (ROOT / "templates").rglob("*.html")}
    wrong = {path.name: names for path, texts in comments.items() if (names := wrong_names("\n".join(texts)))}
    assert wrong == {}


@pytest.mark.parametrize(
    "comment", ["row: desk.queries.Row", "row: Row of desk/home/queries.py", "see desk/home/gone.py", "tenants/x.py"]
)
def test_a_name_that_is_gone_is_found(comment: str) -> None:
    assert wrong_names(f"Of a page. {comment}, or None.")
