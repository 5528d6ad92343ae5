"""Every situation that the product promises to explain is written down, and an existing test stages it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.workloads.cases.situations_nodes import ON_NODES
from tests.workloads.cases.situations_queue import IN_QUEUE, OF_OTHERS
from tests.workloads.situations.kubelets.written import OF_NODES, SAYINGS
from tests.workloads.situations.kubelets.written_again import ENDINGS
from tests.workloads.situations.refusals.written import REFUSALS
from tests.workloads.situations.removals.written import REMOVALS
from workloads.status.explain.types import FACTS

HERE = Path(__file__).parent
SITUATIONS = {**IN_QUEUE, **ON_NODES, **OF_OTHERS, **REFUSALS, **REMOVALS, **SAYINGS, **OF_NODES, **ENDINGS}
# Situations of the queue; of nodes, pods and storage; and those that others cause.
NAMES = """
    over quota at ResourceQuota; larger than ResourceQuota;
    LimitRange; Pod Security; webhook down; local queue missing; local queue held;
    cluster queue inactive; flavor mismatch; waiting for quota; exceeds the maximum; borrowed then reclaimed;
    lower priority preempted; requeued with back-off; gang that fits only in part; gang that requires one rack;
    gang that is larger than a rack; level that the class no longer has; suspended without a Workload;
    admitted but pod refused; namespace terminating; stale mirror;
    untolerated taint; wrong selector; contiguity; cordoned; cpu short; memory short; PVC unbound; PVC missing;
    DRA class missing; DRA devices short; DRA devices of a size short;
    predecessor still ending; image pull; configuration missing; crash; OOM;
    kubelet admission; topology; node lost;
    foreign scheduling gate; edited Job; node's pods full; volume over quota; no storage class;
    object count at ResourceQuota; policy of the site;
    below LimitRange; unknown refusal of the pod; unknown refusal of the Job; no service account; quota not counted;
    nodes down; DRA class not counted; no devices through DRA; PVC elsewhere; secret missing;
    drain; preemption by the scheduler; node not ready; node given up;
    API server down; observe only; check not ready; namespace missing; namespace ending; class held;
    Workload deactivated; slow pull;
    moved off its node; credentials refused; Kueue silent; scheduler silent; controllers silent
"""


def names() -> set[str]:
    return {" ".join(name.split()) for name in NAMES.split(";")}


def test_all_of_them_are_written_down_and_no_others() -> None:
    """Those of kubelets have the names of their reasons, all of which docs/reasons.md lists."""
    assert SITUATIONS.keys() - SAYINGS.keys() - OF_NODES.keys() - ENDINGS.keys() == names()
    assert not IN_QUEUE.keys() & ON_NODES.keys()


@pytest.mark.parametrize("name", sorted(SITUATIONS))
def test_it_is_staged(name: str) -> None:
    module, _, test = SITUATIONS[name].live.partition("::")
    text = (HERE / f"{module}.py").read_text()
    assert test in [one.name for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)]
    assert "as_written(" in text


@pytest.mark.parametrize("name", sorted(SITUATIONS))
def test_its_neighbour_differs(name: str) -> None:
    found = SITUATIONS[name]
    other = SITUATIONS.get(found.neighbour)
    assert found.neighbour
    assert found.facts.keys() <= FACTS.keys()
    assert other is None or other.reason != found.reason
