"""/api/: everything of the contract is on the page, with examples that its own schemas accept."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from portal.docs.examples import example_of
from portal.docs.reference import THEMES, fields_by_schema, operations_by_theme
from portal.docs.sections import schema_places
from portal.templatetags.ui import ticked
from tests.support.http import contract

INDEX = "/api/"
SIZE_MAX = 150_000


@pytest.fixture(scope="module")
def pages(django_db_blocker: Any, django_db_setup: None) -> dict[str, str]:
    """The index and every section to which it links, by address."""
    with django_db_blocker.unblock():
        found = {INDEX: read(INDEX)}
        for path in dict.fromkeys(re.findall(r'href="(/api/[a-z-]+)"', found[INDEX])):
            found[path] = read(path)
    assert len(found) > 6
    return found


def read(path: str) -> str:
    answer = Client().get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method, operation)
        for path, methods in contract.contract()["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_pages_are_open_and_say_nothing_of_anybody(pages: dict[str, str]) -> None:
    for page in pages.values():
        assert "Sign out" not in page
        assert "same-call" not in page
        assert "<style" not in page
        assert " style=" not in page


def test_no_page_is_too_long_to_read(pages: dict[str, str]) -> None:
    assert {path: len(page.encode()) for path, page in pages.items() if len(page.encode()) > SIZE_MAX} == {}


def test_every_call_has_its_place_its_scope_and_an_example(pages: dict[str, str]) -> None:
    for path, method, operation in operations():
        name = operation["operationId"]
        (address,) = re.findall(rf'href="(/api/[a-z-]+)#{name}" data-moved', pages[INDEX])
        page = pages[address]
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


def test_every_link_leads_somewhere(pages: dict[str, str]) -> None:
    ids = {path: re.findall(r' id="([^"]+)"', page) for path, page in pages.items()}
    for path, page in pages.items():
        assert len(ids[path]) == len(set(ids[path])), path
        assert set(re.findall(r' href="#([^"]+)"', page)) - set(ids[path]) == set(), path
        for other, anchor in re.findall(r'href="(/api/[a-z-]+)#([^"]+)"', page):
            assert anchor in ids[other], (path, other, anchor)


def test_what_could_be_linked_on_the_one_page_leads_on_from_the_index(pages: dict[str, str]) -> None:
    """Programs and notes have addresses such as /api/#workloads_launch and /api/#thing-Workload."""
    names = {operation["operationId"] for _path, _method, operation in operations()}
    names |= {f"thing-{name}" for name in schema_places()}
    for name in names:
        (entry,) = re.findall(rf'<li id="{name}">.*?</li>', pages[INDEX], re.DOTALL)
        assert re.search(rf'href="/api/[a-z-]+#{name}" data-moved', entry)
    answered = set(re.findall(r'id="thing-(\w+)" aria', "".join(pages.values())))
    assert answered == set(schema_places())


def test_every_call_is_in_a_section_of_the_list() -> None:
    assert [*operations_by_theme(contract.contract())] == [*THEMES]


def test_there_is_no_other_section() -> None:
    assert Client().get("/api/no-such-section").status_code == 404


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
