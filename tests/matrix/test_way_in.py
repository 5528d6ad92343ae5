"""Authentication and scopes are the same for all addresses, so a sample shows the answers to refused roles.

`first_of_each_way_in` gives the sample. In `run.py soak matrix` the refused roles request everything.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from accounts.models import Scope
from tests.matrix.sweep import OURS, VIEWS, first_of_each_way_in, scopes
from tests.matrix.tables.api_table import API
from tests.matrix.tables.page_table import PAGES
from tests.matrix.tables.policy import PARTS, ROLES
from tests.support.source import ROOT, tracked_files

# Attributes of a view that decide about access before the object is looked up.
DECIDE = (
    "as_view",
    "check_permissions",
    "dispatch",
    "get_authenticators",
    "get_permissions",
    "handle_exception",
    "initial",
    "initialize_request",
    "perform_authentication",
    "permission_denied",
)
# No other module reads that header: a token opens no page, and its reader refuses an expired or revoked token.
READ_TOKENS = {
    "accounts/api_tokens/authentication.py",
    "desk/streaming/application.py",
    # Counts what one caller has in progress; a wrong token is counted like a right one, and lets nobody in.
    "portal/web/admission/middleware.py",
}
SAMPLE = first_of_each_way_in(API)


def own(view: type[APIView]) -> list[str]:
    """Methods about access that the view itself, or a parent class of the portal, overrides."""
    ours = [one for one in view.__mro__ if not one.__module__.startswith(("rest_framework", "django", "builtins"))]
    return [f"{one.__name__}.{name}" for one in ours for name in DECIDE if name in vars(one)]


@pytest.mark.parametrize("name", sorted({row.route for row in API if not row.open_because}))
def test_every_call_lets_in_by_the_same_classes(name: str) -> None:
    view: type[APIView] = VIEWS[name].cls  # type: ignore[union-attr]
    given: dict[str, object] = VIEWS[name].initkwargs  # type: ignore[union-attr]
    assert own(view) == []
    for field in ("authentication_classes", "permission_classes"):
        assert field not in given
        assert getattr(view, field) == getattr(api_settings, f"DEFAULT_{field.upper()}")
    for row in API:
        if row.route == name:
            # "any": a token revokes itself, whatever its scopes
            assert row.scope == ("any" if set(scopes(row)) == set(Scope) else scopes(row)[0])
            assert len(scopes(row)) == 1 or row.scope == "any" or row in SAMPLE


def reads_the_header(node: ast.AST) -> bool:
    """Whether the node reads the header, by its own name or by its name in the WSGI environment."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        names: list[ast.expr] = [node.slice]
    else:
        names = node.args if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("get") else []
    said = [str(one.value).lower() for one in names if isinstance(one, ast.Constant)]
    return bool({"authorization", "http_authorization"} & {*said})


def test_no_page_reads_a_token() -> None:
    assert [row.route for row in PAGES if hasattr(VIEWS[row.route], "cls")] == []
    found = {
        path
        for path in (path.relative_to(ROOT) for path in tracked_files() if path.suffix == ".py" and path.exists())
        if path.parts[0] in (*OURS, "desk", "portal")
        if any(reads_the_header(node) for node in ast.walk(ast.parse((ROOT / path).read_text())))
    }
    assert found == {Path(name) for name in READ_TOKENS}


def test_every_role_is_in_one_part() -> None:
    assert sorted(role for part in PARTS.values() for role in part) == sorted(ROLES)


def test_the_sample_has_every_method_with_every_scope() -> None:
    asked = {(row.method, row.scope) for row in API}
    assert {(row.method, row.scope) for row in SAMPLE} == asked
    assert len(asked) > 10
