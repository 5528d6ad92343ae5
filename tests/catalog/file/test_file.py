"""The catalog as a file: reading, errors with their position, writing, and the difference to apply. No database."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.file.diff import diff_documents, diff_lines
from catalog.file.reader import read_document
from catalog.file.types import REQUIRED, CatalogDocument, FieldSchema, FileProblem, Schema
from catalog.file.writer import write_document

CLASS = (
    FieldSchema("name", "text", length_max=20),
    FieldSchema("resource", "text", ""),
    FieldSchema("node_labels", "labels", {}),
    FieldSchema("tolerations", "tolerations", []),
    FieldSchema("memory_mib", "integer", None, is_optional=True),
    FieldSchema("price_per_unit_hour", "decimal", Decimal(0)),
    FieldSchema("promise_limit", "integer", None, is_optional=True),
    FieldSchema("terms", "text", ""),
    FieldSchema("teams", "names", []),
    FieldSchema("runs_until", "moment", None, is_optional=True),
    FieldSchema("life_cycle", "text", "draft", choices=("draft", "active", "retiring", "retired")),
)
IMAGE = (FieldSchema("reference", "text"), FieldSchema("deprecated_since", "date", None, is_optional=True))
SCHEMA: Schema = {"classes": CLASS, "images": IMAGE}


def a_class(**values: Any) -> dict[str, Any]:
    defaults = {one.name: "" if one.default is REQUIRED else one.default for one in CLASS}
    return {**defaults, "name": "A100", **values}


def problems(text: str) -> list[str]:
    return [str(problem) for problem in read_document(text, SCHEMA)[1]]


def of_class(field: str) -> list[str]:
    return problems(f"version: 1\nclasses:\n  a100:\n    name: A\n    {field}\n")


FULL = CatalogDocument(
    classes={
        "a100": a_class(
            resource="nvidia.com/gpu",
            node_labels={"gpu": "true", "count": "8"},
            tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            memory_mib=81920,
            price_per_unit_hour=Decimal("2.5000"),
            terms="Be kind.\n\n  memory_mib: 5 # no comment\n",
            teams=["audio", "vision"],
            runs_until=datetime(2027, 3, 31, 18, tzinfo=UTC),
            life_cycle="active",
        )
    },
    images={"PyTorch 2.7": {"reference": "quay.io/x/y:1", "deprecated_since": date(2026, 1, 31)}},
)


# ---- writing -----------------------------------------------------------------------------------------------------


def test_what_is_written_says_what_differs_from_the_defaults_with_units() -> None:
    text = write_document(FULL, SCHEMA)
    assert "    memory_mib: 81920  # MiB per unit\n" in text
    assert "    price_per_unit_hour: 2.5  # per unit-hour\n" in text
    assert "      memory_mib: 5 # no comment" in text.split("terms: |\n")[1], "a text is left as it is"
    assert "promise_limit" not in text


def test_what_is_written_is_read_as_the_same() -> None:
    document, wrong = read_document(write_document(FULL, SCHEMA), SCHEMA)
    assert (document, wrong) == (FULL, [])


def test_the_order_in_which_things_come_makes_no_difference() -> None:
    assert FULL.classes is not None
    one = FULL.classes["a100"]
    turned = {**one, "node_labels": dict(reversed(one["node_labels"].items()))}
    turned["tolerations"] = [dict(reversed(item.items())) for item in one["tolerations"]]
    first, second = CatalogDocument({"a": one, "b": one}, {}), CatalogDocument({"b": turned, "a": turned}, {})
    assert write_document(first, SCHEMA) == write_document(second, SCHEMA)


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], include_characters="\n"), max_size=60)


@given(name=TEXTS.filter(lambda text: len(text) <= 20), terms=TEXTS, value=TEXTS, units=st.integers(0, 2**31 - 1))
def test_any_text_and_number_survives(name: str, terms: str, value: str, units: int) -> None:
    document = CatalogDocument(
        {"x": a_class(name=name, terms=terms, node_labels={"k": value}, promise_limit=units)}, {}
    )
    assert read_document(write_document(document, SCHEMA), SCHEMA) == (document, [])


@pytest.mark.parametrize("terms", ["\n", "\n\n", "a\n", "a\n\n", "\na", " \n", "\n ", "a\n\nb\n"])
def test_empty_lines_survive_wherever_they_stand(terms: str) -> None:
    document = CatalogDocument({"x": a_class(terms=terms), "y": a_class(terms=terms)}, {})
    assert read_document(write_document(document, SCHEMA), SCHEMA) == (document, [])


# ---- reading -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("memory_mb: 5", "line 5, classes.a100.memory_mb: Unknown field. Did you mean memory_mib?"),
        (
            "colour: red",
            "line 5, classes.a100.colour: Unknown field. Possible fields: life_cycle, memory_mib",
        ),
        (
            "memory_mib: much",
            "line 5, classes.a100.memory_mib: Enter a whole number of 0 or more, not 'much'.",
        ),
        (
            "memory_mib: '8'",
            "classes.a100.memory_mib: Enter a whole number of 0 or more, not '8' in quotes.",
        ),
        ("memory_mib: -1", "Enter a whole number of 0 or more, not '-1'."),
        ("memory_mib: 2147483648", "Enter a whole number of 0 or more, not '2147483648'."),
        ("memory_mib: [1]", "Enter a whole number of 0 or more, not a list."),
        ("price_per_unit_hour: cheap", "Enter a number such as 2.50, not 'cheap'."),
        ("price_per_unit_hour: .nan", "Enter a number such as 2.50, not '.nan'."),
        ("resource: [nvidia.com/gpu]", "classes.a100.resource: Enter a text, not a list."),
        ("resource:", "classes.a100.resource: Enter a text, not nothing."),
        ("life_cycle: open", "classes.a100.life_cycle: Enter one of draft, active, retiring, retired, not 'open'."),
        ("node_labels: gpu", "classes.a100.node_labels: Enter names with values, not 'gpu'."),
        ("node_labels: {gpu: [1]}", "classes.a100.node_labels.gpu: Enter a text, not a list."),
        ("teams: vision", "classes.a100.teams: Enter a list, not 'vision'."),
        ("tolerations: [{kee: x}]", "classes.a100.tolerations[0].kee: Unknown field. Did you mean key?"),
        ("runs_until: 2027-01-01", "Enter a time with its zone, such as 2027-03-31T18:00:00Z, not"),
        ("name: B", "line 5, classes.a100.name: This name is used twice."),
        ("? [x]\n    : 1", "classes.a100: Enter a name, not a list."),
    ],
)
def test_what_is_wrong_is_said_with_line_path_and_reason(line: str, said: str) -> None:
    assert any(said in problem for problem in of_class(line)), of_class(line)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "The file is empty."),
        ("- a", "line 1: Enter names with values, not a list."),
        ("classes: {}", "version: Add the version of the file: `version: 1`."),
        ("version: 2", "line 1, version: Only version 1 of the file is supported."),
        ("version: 1\nclases: {}", "line 2, clases: Unknown field. Did you mean classes?"),
        ("version: 1\nclasses: {a: {}}", "classes.a.name: This field is required: it has no default."),
        ("version: 1\nclasses: {a: {name: A, terms: x", "This is not YAML: expected"),
        (
            "version: 1\nclasses: &x {}\nimages: *x",
            "*x is a YAML alias; aliases are not supported. Write the value out.",
        ),
        ("version: 1\n---\nversion: 1", "This is not YAML: but found another document."),
        ("\0", "This is not YAML: it contains an invalid character."),
        (f"version: 1\nclasses: {{a: {{name: {'x' * 21}}}}}", "Enter at most 20 characters; the text has 21."),
        ("[" * 1_000_000 + "]" * 1_000_000, "line 1: The file is nested too deeply: at most 20 levels."),
        ("\n".join(" " * level + "a:" for level in range(21)), "line 21: The file is nested too deeply"),
        ("# " + "x" * 2_100_000, "larger than 2 MiB"),
        ("version: 1\nimages: {x: {reference: a, deprecated_since: soon}}", "Enter a date such as 2027-03-31, not"),
        ("version: 1\nclasses: {a: {name: !!python/object/apply:os.abort []}}", "Enter a text, not a list."),
    ],
)
def test_files_that_are_none_are_refused_in_words(text: str, said: str) -> None:
    assert any(said in problem for problem in problems(text)), problems(text)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    text = "version: 1\nclasses:\n  a: {nam: A, memory_mib: x}\n  b: 3\nimages:\n  i: {reference: ~}\n"
    paths = {problem.path for problem in read_document(text, SCHEMA)[1]}
    assert paths == {"classes.a.nam", "classes.a.name", "classes.a.memory_mib", "classes.b", "classes.b.name"} | {
        "images.i.reference"
    }


def test_values_are_what_is_written_not_what_yaml_makes_of_it() -> None:
    text = "version: 1\nclasses: {a: {name: 12.10, resource: no, memory_mib: 010, node_labels: {gpu: true}}}"
    document, wrong = read_document(text, SCHEMA)
    assert wrong == []
    assert document.classes == {"a": a_class(name="12.10", resource="no", memory_mib=10, node_labels={"gpu": "true"})}


def test_a_section_that_is_not_there_is_not_an_empty_one() -> None:
    assert read_document("version: 1\nclasses:\n", SCHEMA)[0] == CatalogDocument(classes={}, images=None)


@given(st.text(max_size=120))
def test_nothing_that_is_typed_breaks_it(text: str) -> None:
    assert all(
        isinstance(problem, FileProblem)
        for problem in read_document("version: 1\nclasses:\n  a:\n    " + text, SCHEMA)[1]
    )


# ---- comparison of two files -------------------------------------------------------------------------------------


def told(now: dict[str, Any], wanted: dict[str, Any], *, prune: bool = False) -> list[str]:
    return diff_lines(
        diff_documents(CatalogDocument(now, {}), CatalogDocument(wanted, None), SCHEMA, prune=prune), SCHEMA
    )


def test_nothing_differs_from_itself() -> None:
    assert diff_documents(FULL, FULL, SCHEMA, prune=True) == []


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ({"promise_limit": 8}, {"promise_limit": 12}, "promise_limit 8 → 12"),
        ({"promise_limit": 8}, {}, "promise_limit 8 → empty"),
        (
            {"price_per_unit_hour": Decimal("2.5000")},
            {"price_per_unit_hour": Decimal(3)},
            "price_per_unit_hour 2.5 → 3",
        ),
        ({"name": "Old"}, {"name": "New"}, 'name "Old" → "New"'),
        ({"life_cycle": "active"}, {"life_cycle": "retiring"}, "life_cycle active → retiring"),
        ({"teams": ["a", "b"]}, {"teams": ["b", "c"]}, "teams −a +c"),
        ({"node_labels": {"a": "1", "b": "1"}}, {"node_labels": {"a": "2", "b": "1"}}, "node_labels −a=1 +a=2"),
        ({"terms": "x" * 100}, {"terms": "y" * 1200}, "terms changed, 100 → 1,200 characters"),
        (
            {"tolerations": []},
            {"tolerations": [{"key": "gpu", "effect": "NoSchedule"}]},
            "tolerations none → gpu NoSchedule",
        ),
        (
            {},
            {"runs_until": datetime(2027, 3, 31, 18, tzinfo=UTC)},
            "runs_until empty → 2027-03-31 18:00 UTC",
        ),
    ],
)
def test_a_change_is_a_line(before: dict[str, Any], after: dict[str, Any], line: str) -> None:
    assert told({"a100": a_class(**before)}, {"a100": a_class(**after)}) == [f"~ class a100: {line}"]


def test_a_new_class_is_told_with_what_it_says() -> None:
    assert told({}, {"h100": a_class(name="H100", life_cycle="active")}) == [
        '+ class h100: name "H100"',
        "+ class h100: life_cycle active",
    ]


def test_what_the_file_leaves_out_stays_unless_pruned() -> None:
    now = {name: a_class(life_cycle=name) for name in ("draft", "active", "retiring", "retired")}
    assert told(now, {}) == []
    assert told(now, {}, prune=True) == [
        "- class active: life_cycle active → retired",
        "- class retiring: life_cycle retiring → retired",
    ]


def test_pruning_leaves_a_section_alone_that_the_file_does_not_have() -> None:
    assert diff_documents(FULL, CatalogDocument(None, None), SCHEMA, prune=True) == []
    removed = diff_documents(FULL, CatalogDocument(None, {}), SCHEMA, prune=True)
    assert diff_lines(removed, SCHEMA) == ["- image PyTorch 2.7: removed"]
