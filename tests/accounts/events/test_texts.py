"""The sentences that the portal shows for events."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Any

import pytest

from accounts.events.texts import VERB_TEXTS, verb_text

ROOT = Path(__file__).parents[3]
APPS = ("accounts", "cluster", "catalog", "tenants", "workloads", "usage", "operations", "desk")


def recorded_verbs() -> dict[str, bool]:
    """Returns each verb that an action records → whether the event belongs to a team (then its members read it)."""
    found = {}
    for path in (path for app in APPS for path in (ROOT / app).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            # `_change` is the catalog's function for life-cycle steps of a class; it records its verb.
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("record", "_change"):
                is_tenants = any(keyword.arg == "tenant" for keyword in node.keywords)
                said = [_text(one) for one in ast.walk(node.args[1])]
                found |= {verb: is_tenants for verb in said if "." in verb}
    return found


def _text(node: ast.AST) -> str:
    """Returns the value of a string constant, or of the name of one."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return named_texts().get(node.id, "") if isinstance(node, ast.Name) else ""


@functools.cache
def named_texts() -> dict[str, str]:
    """Returns the string constants of all modules by name: verbs that are also queried have names."""
    found: dict[str, str] = {}
    for path in (path for app in APPS for path in (ROOT / app).rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.Assign):
                continue
            targets, values = node.targets[0], node.value
            pairs = [(targets, values)]
            if isinstance(targets, ast.Tuple) and isinstance(values, ast.Tuple):
                pairs = list(zip(targets.elts, values.elts, strict=True))
            for target, value in pairs:
                if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found[target.id] = value.value
    return found


def test_every_event_of_a_team_has_its_own_words() -> None:
    verbs = {verb for verb, is_tenants in recorded_verbs().items() if is_tenants}
    assert len(verbs) > 8
    assert verbs - VERB_TEXTS.keys() == set()


def test_no_words_are_kept_for_what_never_happens() -> None:
    assert VERB_TEXTS.keys() - recorded_verbs().keys() == set()


@pytest.mark.parametrize(
    ("verb", "after", "expected"),
    [
        ("request.decided", {"lines": [{"approved": True}, {"approved": True}]}, "approved"),
        ("request.decided", {"lines": [{"approved": False}]}, "denied"),
        ("request.decided", {"lines": [{"approved": True}, {"approved": False}]}, "decided"),
        ("request.decided", {}, "decided"),
        ("team.decided", {"approved": True, "slug": "robots"}, "approved the request for the team"),
        ("team.decided", {"approved": False, "reason": "No."}, "denied the request for the team"),
        ("join.answered", {"accepted": True}, "approved a request to join"),
        ("join.answered", {"accepted": False}, "declined a request to join"),
        ("request.filed", {"lines": [{"units": 1}]}, "submitted"),
    ],
)
def test_a_decision_is_told_with_its_outcome(verb: str, after: dict[str, Any], expected: str) -> None:
    assert verb_text(verb, after) == expected


def test_another_verb_is_told_in_plain_words() -> None:
    assert verb_text("thing.turned_over") == "thing turned over"
