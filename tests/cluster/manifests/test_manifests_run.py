"""Whole objects of a run, against golden files."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from cluster.manifests import run as manifests
from cluster.manifests import workers
from cluster.manifests.run_spec import ClaimSpec, RunSpec
from tests.support import golden_files

NOTEBOOK = RunSpec(
    owner="workloads.workload.7",
    namespace="team-a",
    workload="explore",
    number=3,
    kind="notebook",
    gpu_class="a100",
    units=2,
    interface="device-plugin",
    resource="nvidia.com/gpu",
    device_class="",
    device_selector="",
    node_labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
    tolerations=({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},),
    weight="1.0000",
    price_per_unit_hour="2.5000",
    image="quay.io/jupyter/minimal-notebook:2026-09-01",
    command=(),
    cpu=8,
    memory_gib=32,
    shared_memory_gib=8,
    claim="",
)
JOB = replace(
    NOTEBOOK, workload="train", kind="job", command=("python", "train.py"), image="python:3.14", claim="data", units=1
)
DRA = replace(
    JOB,
    gpu_class="h100",
    interface="dra",
    resource="dra.portal/h100",
    device_class="gpu.nvidia.com",
    device_selector="device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H100 80GB HBM3'",
    units=4,
)
OPTIONS = replace(
    NOTEBOOK,
    claim="data",
    mount_path="/home/work/data",
    env=(("GREETING", "say $(HOME)"),),
    repository="https://git.example.org/team/course.git",
    reference="v2",
    clone_into="course",
)
WORKERS = replace(
    JOB,
    units=2,
    command=(),
    claim="",
    workers=4,
    retries=3,
    priority="production",
    script="#!/usr/bin/env bash\necho $(hostname) $$\ntorchrun train.py",
    checkpoints=True,
)
CPU = replace(JOB, gpu_class="cpu", interface="none", resource="", node_labels={}, tolerations=(), claim="")


def test_a_notebook() -> None:
    secret = manifests.token_secret(NOTEBOOK, token="not a real one", job_uid="11111111-2222-3333-4444-555555555555")
    golden_files.check("run_notebook", [manifests.job(NOTEBOOK), secret])


def test_a_job_with_a_volume() -> None:
    claim = manifests.volume_claim(ClaimSpec(owner="workloads.volume.4", namespace="team-a", name="data", size_gib=50))
    golden_files.check("run_job", [claim, manifests.job(JOB)])


def test_devices_through_dra_come_from_a_template_of_the_run() -> None:
    golden_files.check("run_dra", [manifests.claim_template(DRA), manifests.job(DRA)])


def test_a_memory_size_is_one_more_selector_with_nothing_of_the_team_but_a_number() -> None:
    (request,) = manifests.claim_template(replace(DRA, gpu_memory_gib=40))["spec"]["spec"]["devices"]["requests"]
    assert [one["cel"]["expression"] for one in request["exactly"]["selectors"]] == [
        DRA.device_selector,
        "'memory' in device.capacity[device.driver] && "
        "device.capacity[device.driver].memory.compareTo(quantity('40Gi')) >= 0",
    ]


def test_variables_a_repository_and_a_volume_beside_the_home_directory() -> None:
    golden_files.check("run_options", [manifests.job(OPTIONS)])


def test_workers_find_each_other_by_a_service_and_are_told_their_place() -> None:
    service = workers.headless_service(WORKERS, "train-3", job_uid="11111111-2222-3333-4444-555555555555")
    golden_files.check("run_workers", [manifests.job(WORKERS), service])


def tries(spec: RunSpec) -> dict[str, object]:
    said = manifests.job(spec)["spec"]
    rules = [rule["action"] for rule in said["podFailurePolicy"]["rules"]]
    names = ("completionMode", "parallelism", "completions", "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes")
    return {**{name: said[name] for name in names if name in said}, "rules": rules}


def test_a_crash_ends_a_job_unless_it_may_be_tried_again_and_a_disruption_is_never_counted() -> None:
    one = {"parallelism": 1, "completions": 1}
    four = {"completionMode": "Indexed", "parallelism": 4, "completions": 4}
    assert tries(JOB) == {**one, "backoffLimit": 3, "rules": ["Ignore", "FailJob"]}
    assert tries(replace(JOB, retries=2)) == {**one, "backoffLimit": 2, "rules": ["Ignore"]}
    assert tries(replace(JOB, workers=4)) == {**four, "backoffLimit": 3, "rules": ["Ignore", "FailJob"]}
    again = {"backoffLimitPerIndex": 2, "maxFailedIndexes": 0, "rules": ["Ignore"]}
    assert tries(replace(JOB, workers=4, retries=2)) == {**four, **again}


@pytest.mark.parametrize(("interface", "processes"), [("device-plugin", "2"), ("dra", "2"), ("none", "1")])
def test_torchrun_starts_a_process_for_each_unit_that_a_process_can_have(interface: str, processes: str) -> None:
    found = {
        one["name"]: one.get("value")
        for one in workers.rendezvous_environment(replace(WORKERS, interface=interface), "x-1")
    }
    assert found["PET_NPROC_PER_NODE"] == processes
    assert found.keys() == workers.SET_FOR_WORKERS
    assert workers.rendezvous_environment(JOB, "x-1") == []


def test_a_script_arrives_as_it_was_typed_and_chooses_what_runs_it() -> None:
    def run(script: str) -> str:
        pod = manifests.job(replace(JOB, script=script))["spec"]["template"]["spec"]
        # Unescapes the command as a kubelet does.
        words = [word.replace("$$", "$") for word in pod["containers"][0]["command"]]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    assert run('echo "it\'s $((1 + 1))" \'$(HOME)\' "$0" | cut -c1-19') == "it's 2 $(HOME) /tmp\n"
    assert run("#!/usr/bin/env python3\nprint('a' + \"'b'\")") == "a'b'\n"


@pytest.mark.parametrize(
    ("kind", "priority", "label"),
    [("notebook", "", "interactive"), ("job", "", "batch"), ("job", "production", "production")],
)
def test_the_priority_is_the_jobs_label_alone(kind: str, priority: str, label: str) -> None:
    job = manifests.job(replace(NOTEBOOK, kind=kind, priority=priority))
    assert job["metadata"]["labels"][manifests.PRIORITY_LABEL] == label
    assert manifests.PRIORITY_LABEL not in job["spec"]["template"]["metadata"]["labels"]


def test_without_a_gpu_it_stays_off_nodes_that_have_some() -> None:
    golden_files.check("run_cpu", [manifests.job(CPU)])


@pytest.mark.parametrize(
    "labels",
    [
        {"intel.feature.node.kubernetes.io/gaudi": "true"},
        {"feature.node.kubernetes.io/pci-1200_1da3.present": "true"},
        {"feature.node.kubernetes.io/pci-1da3.present": "true"},
        {"habana.ai/device.count": "8", "habana.ai/driver.version": "1.22.0"},
    ],
    ids=str,
)
def test_without_a_gpu_it_stays_off_gaudi_nodes_whoever_labels_them(labels: dict[str, str]) -> None:
    affinity = manifests.job(CPU)["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    absent = {one["key"] for one in term["matchExpressions"] if one["operator"] == "DoesNotExist"}
    assert absent & labels.keys()
    assert "habana.ai/gaudi" not in absent, "the name of a resource, of no label"


@pytest.mark.parametrize("spec", [NOTEBOOK, JOB, DRA, CPU, OPTIONS, WORKERS])
def test_nothing_is_sent_that_kueue_or_the_cluster_decides(spec: RunSpec) -> None:
    job = manifests.job(spec)
    pod = job["spec"]["template"]["spec"]
    assert not {"suspend", "activeDeadlineSeconds", "ttlSecondsAfterFinished"} & job["spec"].keys()
    assert not {"nodeName", "schedulerName", "priority", "hostNetwork", "hostPID"} & pod.keys()


@pytest.mark.parametrize("spec", [NOTEBOOK, JOB, DRA, CPU, OPTIONS, WORKERS])
def test_a_spec_survives_its_json(spec: RunSpec) -> None:
    assert RunSpec.from_json(spec.to_json()) == spec
    assert RunSpec.from_json({**spec.to_json(), "of_a_newer_release": 1}) == spec


def test_a_spec_of_an_older_release_has_defaults() -> None:
    stored = NOTEBOOK.to_json()
    for name in ("mount_path", "env", "repository", "reference", "clone_into"):
        del stored[name]
    assert RunSpec.from_json(stored) == NOTEBOOK
    with pytest.raises(KeyError):
        RunSpec.from_json({name: value for name, value in stored.items() if name != "image"})


def test_names_of_long_workloads_stay_labels() -> None:
    long = replace(NOTEBOOK, workload="a" * 40, number=1_000_000)
    assert len(manifests.job_name(long)) <= 63
