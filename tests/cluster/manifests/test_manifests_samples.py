"""Manifests to copy: their YAML parses to the intended values, with devices only under limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from cluster.manifests.run_spec import PodSpec
from cluster.manifests.samples import DEPLOYMENT, JOB, POD, sample_objects, sample_yaml

A100 = PodSpec(
    gpu_class="a100",
    interface="device-plugin",
    resource="nvidia.com/gpu",
    device_class="",
    device_selector="",
    node_labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/mig.capable": "true"},
    tolerations=({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},),
    units=2,
    cpu=8,
    memory_gib=32,
    image="docker.io/library/python:3.14-slim",
    namespace="team-a",
)
H100 = replace(
    A100,
    gpu_class="h100",
    interface="dra",
    resource="dra.portal/h100",
    device_class="gpu.nvidia.com",
    device_selector='device.attributes["gpu.nvidia.com"].productName == "NVIDIA H100 80GB HBM3"',
)
CPU = replace(A100, gpu_class="cpu", interface="none", resource="", node_labels={}, tolerations=(), namespace="")


@pytest.mark.parametrize("spec", [A100, H100, CPU], ids=lambda spec: spec.gpu_class)
@pytest.mark.parametrize("kind", [POD, JOB, DEPLOYMENT])
def test_the_text_reads_back_as_the_objects(spec: PodSpec, kind: str) -> None:
    assert list(yaml.safe_load_all(sample_yaml(spec)[kind])) == sample_objects(spec)[kind]


@pytest.mark.parametrize("kind", [POD, JOB, DEPLOYMENT])
def test_values_that_yaml_would_take_for_something_else_stay_text(kind: str) -> None:
    """A label "true" or "1" that was parsed as a boolean or number would be refused."""
    text = sample_yaml(A100)[kind]
    assert pod_of(yaml.safe_load(text))["nodeSelector"]["nvidia.com/mig.capable"] == "true"


@pytest.mark.parametrize("kind", [POD, JOB, DEPLOYMENT])
def test_devices_are_limits_and_nothing_is_requested(kind: str) -> None:
    container = pod_of(sample_objects(A100)[kind][-1])["containers"][0]
    assert container["resources"] == {"limits": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2"}}


@pytest.mark.parametrize("kind", [POD, JOB, DEPLOYMENT])
def test_claims_come_from_a_template_that_stands_before_the_pod(kind: str) -> None:
    template, workload = sample_objects(H100)[kind]
    request = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert (template["kind"], request["deviceClassName"], request["count"]) == (
        "ResourceClaimTemplate",
        "gpu.nvidia.com",
        2,
    )
    claim = pod_of(workload)["resourceClaims"][0]
    assert claim["resourceClaimTemplateName"] == template["metadata"]["name"]
    assert "dra.portal/h100" not in sample_yaml(H100)[kind]


def test_only_the_job_is_said_to_be_queued() -> None:
    heads = {kind: text.partition("\n")[0] for kind, text in sample_yaml(A100).items()}
    assert heads[JOB].startswith("# Queued:")
    assert heads[POD].startswith("# Not queued:")
    assert heads[DEPLOYMENT].startswith("# Not queued:")


def test_every_decision_carries_its_reason() -> None:
    lines = sample_yaml(A100)[JOB].splitlines()
    for key in ("kueue.x-k8s.io/queue-name", "gpu-portal/class", "nodeSelector", "tolerations", "limits"):
        index = next(number for number, line in enumerate(lines) if line.strip().startswith(f"{key}:"))
        assert lines[index - 1].strip().startswith("#"), key


def test_a_long_class_name_still_makes_a_valid_name() -> None:
    for found in sample_objects(replace(A100, gpu_class="a" * 63)).values():
        assert all(len(one["metadata"]["name"]) <= 63 for one in found)


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = manifest["spec"]
    return spec["template"]["spec"] if "template" in spec else spec
