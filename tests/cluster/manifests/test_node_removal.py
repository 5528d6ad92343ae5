"""Which taints say that a node is being removed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cluster.manifests import run as manifests
from cluster.manifests.node_removal.cordons import Cordon
from cluster.manifests.node_removal.notices import removal_notice
from cluster.manifests.node_removal.protection import PROTECTION
from cluster.manifests.run_spec import RunSpec
from tests.cluster.manifests.test_manifests_run import CPU, DRA, JOB, NOTEBOOK

AT = datetime(2026, 11, 27, 14, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("taint", "code"),
    [
        ("aws-node-termination-handler/spot-itn", "spot_reclaimed"),
        ("aws-node-termination-handler/scheduled-maintenance", "provider_maintenance"),
        ("aws-node-termination-handler/asg-lifecycle-termination", "scaled_in"),
        ("cloud.google.com/impending-node-termination", "provider_termination"),
        ("remediator.kubernetes.azure.com/unschedulable", "provider_event"),
        ("karpenter.sh/disrupted", "removed_by_karpenter"),
        ("karpenter.sh/disruption", "removed_by_karpenter"),
        ("ToBeDeletedByClusterAutoscaler", "removed_by_autoscaler"),
    ],
)
def test_each_handler_is_known_by_its_taint(taint: str, code: str) -> None:
    found = removal_notice(["nvidia.com/gpu", taint])
    assert found is not None
    assert found.code == code


@pytest.mark.parametrize(
    "taint",
    [
        "nvidia.com/gpu",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/unreachable",
        "kubernetes.azure.com/scalesetpriority",
        "DeletionCandidateOfClusterAutoscaler",
        "aws-node-termination-handler/rebalance-recommendation",
    ],
)
def test_other_taints_announce_no_removal(taint: str) -> None:
    assert removal_notice([taint]) is None


def test_the_more_specific_notice_counts() -> None:
    found = removal_notice(["ToBeDeletedByClusterAutoscaler", "aws-node-termination-handler/spot-itn"])
    assert found is not None
    assert found.code == "spot_reclaimed"


@pytest.mark.parametrize(
    ("found", "how"),
    [
        (Cordon("kubectl", AT), "cordoned with kubectl since 27 Nov 2026, 14:02"),
        (Cordon("kubectl-patch", None), "cordoned with kubectl, since when is unknown"),
        (Cordon("kured", AT), "cordoned by kured since 27 Nov 2026, 14:02"),
        (Cordon("", AT), "cordoned since 27 Nov 2026, 14:02, by whom is unknown"),
        (Cordon("", None), "cordoned, by whom and since when is unknown"),
        (Cordon("gpu-portal", AT, is_maintenance=True), "cordoned for maintenance since 27 Nov 2026, 14:02"),
    ],
)
def test_who_cordoned_a_node_is_said_and_never_guessed(found: Cordon, how: str) -> None:
    assert found.how == how


def annotations(spec: RunSpec) -> dict[str, str]:
    found: dict[str, str] = manifests.job(spec)["spec"]["template"]["metadata"].get("annotations", {})
    return found


@pytest.mark.parametrize("spec", [NOTEBOOK, DRA, CPU], ids=["notebook", "job with DRA", "job without GPUs"])
def test_what_would_lose_its_work_is_protected_from_autoscalers(spec: RunSpec) -> None:
    assert PROTECTION.items() <= annotations(spec).items()


@pytest.mark.parametrize(
    "spec",
    [
        replace(JOB, checkpoints=True),
        # Karpenter would not evict it from a node that is reclaimed.
        replace(NOTEBOOK, node_labels={"karpenter.sh/capacity-type": "spot"}),
    ],
    ids=["job with checkpoints", "notebook on spot nodes"],
)
def test_what_continues_or_may_be_reclaimed_is_not_protected(spec: RunSpec) -> None:
    assert not PROTECTION.keys() & annotations(spec).keys()
