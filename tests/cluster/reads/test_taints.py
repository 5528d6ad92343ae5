"""Which taints a pod's tolerations match, as the scheduler sees it."""

from __future__ import annotations

import pytest

from cluster.reads.taints import is_tolerated

TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu", "value": "present"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": ""}, True),
        ({"key": "nvidia.com/gpu"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Equal", "value": "absent"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "amd.com/gpu", "operator": "Exists"}, False),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_one_toleration(toleration: dict[str, str], expected: bool) -> None:
    assert is_tolerated(TAINT, [toleration]) is expected


def test_any_of_several() -> None:
    assert is_tolerated(TAINT, [{"key": "other", "operator": "Exists"}, {"operator": "Exists"}])
    assert not is_tolerated(TAINT, [])


def test_a_taint_without_a_value() -> None:
    taint = {"key": "repair", "effect": "NoExecute"}
    assert is_tolerated(taint, [{"key": "repair"}])
    assert not is_tolerated(taint, [{"key": "repair", "value": "yes"}])
