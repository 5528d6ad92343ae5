"""The contract keeps the rules of Redocly's `recommended` and Spectral's `spectral:oas`, which need no node here.

One rule of Spectral is not kept: it allows scopes for OAuth 2 only, and OpenAPI 3.1 for every kind of security.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from accounts.schema.document import TAGS
from portal.docs.contract import contract_text
from tests.support.http.contract import contract, validator
from tests.support.source import ROOT

Operation = dict[str, Any]
METHODS = {"get", "put", "post", "delete", "patch"}


def operations() -> Iterator[tuple[str, str, Operation]]:
    for path, item in contract()["paths"].items():
        assert item.keys() <= METHODS, path
        for method, operation in item.items():
            yield path, method, operation


def breaking(rule: Any) -> list[str]:
    return [f"{method} {path}" for path, method, operation in operations() if not rule(path, operation)]


def test_the_document_says_what_it_is_where_and_whose() -> None:
    info, servers = contract()["info"], contract()["servers"]
    assert all(info[name] for name in ("title", "version", "description"))
    assert info["contact"]["name"]
    assert info["contact"]["url"].startswith("http")
    assert info["license"]["name"]
    assert "url" in info["license"] or "identifier" in info["license"]
    assert servers
    assert all(not one["url"].endswith("/") and one["description"] for one in servers)


def test_tags_are_described_sorted_used_and_unique() -> None:
    names = [one["name"] for one in contract()["tags"]]
    assert names == sorted(set(names))
    assert all(one["description"].endswith(".") for one in contract()["tags"])
    assert breaking(lambda _path, one: len(one["tags"]) == 1 and one["tags"][0] in names) == []
    assert set(names) == {one["tags"][0] for _path, _method, one in operations()} == set(TAGS)


def test_every_operation_has_summary_description_and_an_id_of_its_own() -> None:
    assert breaking(lambda _path, one: one["summary"] and one["description"]) == []
    assert breaking(lambda _path, one: not one["summary"].endswith(".") and one["description"].endswith(".")) == []
    assert breaking(lambda _path, one: re.fullmatch(r"[a-z][a-z0-9_]*", one["operationId"])) == []
    ids = [one["operationId"] for _path, _method, one in operations()]
    assert len(ids) == len(set(ids))


def test_every_operation_says_which_token_it_needs() -> None:
    schemes = contract()["components"]["securitySchemes"]
    assert breaking(lambda _path, one: all(name in schemes for need in one["security"] for name in need)) == []
    assert [path for path, _method, one in operations() if not one["security"]] == ["/api/v1/openapi.json"]


def test_every_operation_has_an_answer_a_refusal_and_describes_them() -> None:
    assert breaking(lambda _path, one: any(status.startswith("2") for status in one["responses"])) == []
    assert breaking(lambda _path, one: any(status.startswith("4") for status in one["responses"])) == []
    assert breaking(lambda _path, one: all("$ref" in it or it["description"] for it in one["responses"].values())) == []


def test_path_parameters_are_those_of_the_path_and_named_as_the_documentation_names_them() -> None:
    def is_well(path: str, one: Operation) -> bool:
        said = [it for it in one.get("parameters", []) if it["in"] == "path"]
        named = re.findall(r"{(\w+)}", path)
        return sorted(it["name"] for it in said) == sorted(named) and all(it["required"] for it in said)

    assert breaking(is_well) == []
    documented = set(re.findall(r"`[A-Z]+ (/(?:api|live)/[^`?]*)`", (ROOT / "docs" / "api.md").read_text()))
    paths = {path.replace("{", "<").replace("}", ">") for path in contract()["paths"]}
    assert paths <= documented


def test_parameters_are_described_and_unique() -> None:
    def is_well(_path: str, one: Operation) -> bool:
        said = [(it["in"], it["name"].lower()) for it in one.get("parameters", [])]
        return len(said) == len(set(said)) and all(it.get("description") for it in one.get("parameters", []))

    assert breaking(is_well) == []


def test_paths_are_told_apart_and_end_without_a_slash() -> None:
    paths = list(contract()["paths"])
    assert not [path for path in paths if path.endswith("/") or "?" in path]
    bare = [re.sub(r"{\w+}", "{}", path) for path in paths]
    assert len(bare) == len(set(bare))


def test_nothing_is_declared_that_is_not_used_or_used_that_is_not_declared() -> None:
    text = contract_text().decode()
    used = set(re.findall(r'"#/components/(\w+)/([^"]+)"', text))
    declared = {(kind, name) for kind, things in contract()["components"].items() for name in things}
    assert used <= declared
    assert {one for one in declared - used if one[0] != "securitySchemes"} == set()


def test_examples_are_valid() -> None:
    def media(operation: Operation) -> Iterator[dict[str, Any]]:
        yield from operation.get("requestBody", {}).get("content", {}).values()
        for answer in operation["responses"].values():
            yield from answer.get("content", {}).values()

    wrong = [
        (path, method, error.message)
        for path, method, operation in operations()
        for one in media(operation)
        if "example" in one
        for error in validator(json.dumps(one["schema"])).iter_errors(one["example"])
    ]
    assert wrong == []


@pytest.mark.parametrize("word", ["eval(", "<script"])
def test_descriptions_run_nothing(word: str) -> None:
    assert word not in contract_text().decode().lower()
