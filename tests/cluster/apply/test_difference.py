"""The lines of a plan: what is added reads as an addition, whatever its place in a list."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.apply.difference import diff_lines


def egress(*hosts: str) -> list[dict[str, Any]]:
    return [{"to": [{"ipBlock": {"cidr": host}}]} for host in hosts]


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        # In front of others, items without a name.
        (egress("10.0.0.1/32", "10.0.0.2/32"), egress("10.0.0.9/32", "10.0.0.1/32", "10.0.0.2/32"),
         ["+ spec[0].to[0].ipBlock.cidr: 10.0.0.9/32"]),
        (egress("10.0.0.9/32", "10.0.0.1/32"), egress("10.0.0.1/32"), ["- spec[0].to[0].ipBlock.cidr: 10.0.0.9/32"]),
        (["b", "c"], ["a", "b", "c"], ["+ spec[0]: a"]),
        (["a", "a", "b"], ["a", "b"], ["- spec[1]: a"]),
        # As many items as before: one of them has other content.
        (egress("10.0.0.1/32", "10.0.0.2/32"), egress("10.0.0.1/32", "10.0.0.3/32"),
         ["- spec[1].to[0].ipBlock.cidr: 10.0.0.2/32", "+ spec[1].to[0].ipBlock.cidr: 10.0.0.3/32"]),
        ([{"name": "x", "units": 1}], [{"name": "y", "units": 2}, {"name": "x", "units": 1}],
         ["+ spec[y].name: y", "+ spec[y].units: 2"]),
        # Two subjects of one name are two subjects.
        ([{"name": "x", "kind": "User"}], [{"name": "x", "kind": "User"}, {"name": "x", "kind": "Group"}],
         ["+ spec[1].kind: Group", "+ spec[1].name: x"]),
        # The order of a list is content, too.
        (["a", "b"], ["b", "a"], ['- spec: ["a", "b"]', '+ spec: ["b", "a"]']),
        ([{"name": "x"}, {"name": "y"}], [{"name": "y"}, {"name": "x"}],
         ['- spec: [{"name": "x"}, {"name": "y"}]', '+ spec: [{"name": "y"}, {"name": "x"}]']),
        # What is empty is there.
        ({"a": 1}, {"a": 1, "b": {}}, ["+ spec.b: {}"]),
        ({"a": 1}, [], ["+ spec: []", "- spec.a: 1"]),
        ({"a": [1]}, {"a": [1]}, []),
    ],
)  # fmt: skip
def test_what_is_added_is_an_addition(before: Any, after: Any, lines: list[str]) -> None:
    assert list(diff_lines({"spec": before}, {"spec": after})) == lines


def test_a_new_object_has_only_additions() -> None:
    body = {"kind": "Role", "metadata": {"name": "x", "labels": {"a": "b"}}, "rules": [{"verbs": ["get"]}], "status": 1}
    assert diff_lines(None, body) == ("+ labels.a: b", "+ rules[0].verbs[0]: get")
