"""/api/: everything of the contract is on the page, with examples that its own schemas accept."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from portal.docs.examples import example_of
from portal.docs.reference import fields_by_schema, operations_by_theme
from portal.templatetags.ui import ticked
from tests.support.http import contract


@pytest.fixture(scope="module")
def page(django_db_setup: None) -> str:
    answer = Client().get("/api/")
    assert answer.status_code == 200
    return answer.content.decode()


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method, operation)
        for path, methods in contract.contract()["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_page_is_open_and_says_nothing_of_anybody(page: str) -> None:
    assert "Sign out" not in page
    assert "same-call" not in page
    assert "<style" not in page
    assert " style=" not in page


def test_every_call_has_its_place_its_scope_and_an_example(page: str) -> None:
    for path, method, operation in operations():
        name = operation["operationId"]
        (part,) = re.findall(rf'<article[^>]* id="{name}".*?</article>', page, re.DOTALL)
        assert f'href="#{name}"' in page.split("<article")[0], f"{name} is not in the navigation"
        assert f"<code>{path}</code>" in part
        assert f'<span class="verb">{method.upper()}</span>' in part
        assert ("Scope <code>" in part) == bool(operation["security"])
        assert "curl" in part
        for one in operation.get("parameters", []):
            assert f"<code>{one['name']}</code>" in part
        for status in operation["responses"]:
            assert status in part


def test_every_link_within_the_page_leads_somewhere(page: str) -> None:
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r' href="#([^"]+)"', page)) - set(ids) == set()


def test_what_stands_between_backticks_is_code_and_nothing_else_is_markup() -> None:
    assert ticked("Is `<b>`, not <i>.") == "Is <code>&lt;b&gt;</code>, not &lt;i&gt;."


def test_bounds_and_fields_within_fields_are_told() -> None:
    by_id = {one.id: one for part in operations_by_theme(contract.contract()).values() for one in part}
    launch = {field.name: field for field in by_id["workloads_launch"].body}
    assert (launch["image"].is_needed, launch["image"].bounds) == (True, "at most 300 characters")
    assert "options.script" in launch
    lines = {field.name: field for field in by_id["requests_file"].body}
    assert lines["lines[].kind"].kind == "base · boost · reclaim"
    assert lines["lines"].link == "NewLine"
    assert "NewLine" in fields_by_schema(contract.contract())


def test_examples_are_what_their_schemas_say() -> None:
    found = 0
    for _path, _method, operation in operations():
        answers = [one for status, one in operation["responses"].items() if status.startswith("2")]
        for part in [operation.get("requestBody", {}), *answers]:
            for media in part.get("content", {}).values():
                if "example" not in media:
                    continue
                found += 1
                wrong = contract.validator(json.dumps(media["schema"])).iter_errors(media["example"])
                assert [(operation["operationId"], one.json_path, one.message) for one in wrong] == []
    assert found > 60


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "format": "date-time"}, "2027-01-31T12:00:00Z"),
        ({"type": ["string", "null"]}, None),
        ({"type": "integer", "minimum": 4}, 4),
        (
            {"type": "object", "properties": {"units": {"type": "integer"}, "x": {"type": "string"}}},
            {"units": 2, "x": ""},
        ),
        ({"type": "object", "properties": {"units": {"type": "string"}}}, {"units": ""}),
        ({"type": "array", "items": {"type": "string", "minLength": 1}}, []),
        ({"enum": ["b", "a"]}, "b"),
    ],
)
def test_a_sample_is_of_its_type(schema: dict[str, Any], value: object) -> None:
    assert example_of(schema, {}) == value
    Draft202012Validator(schema).validate(value)
