"""What the exporters of the simulated nodes answer: the metrics, units and labels of each kind of hardware."""

from __future__ import annotations

from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from devcluster.controlplane import hardware
from devcluster.monitoring import amd_text, dcgm_text
from devcluster.monitoring.devices import gpu_node
from tests.devcluster.monitoring.simulated import AT, CARD, gpus_of, notebook, pod, samples, text, values

OF_EVERY_ROW = {"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION"}
OF_POD = {"namespace", "pod", "container"}
OF_INSTANCE = {"GPU_I_ID", "GPU_I_PROFILE"}
OF_CLAIM = {"dra_claim_name", "dra_claim_namespace", "dra_driver_name", "dra_pool_name", "dra_device_name"}
ACTIVE, UTIL, USED = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"
MEMORY = ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED")
# Of each simulated node with NVIDIA GPUs: physical cards, and the profiles of the instances of one.
NVIDIA_NODES = {
    **dict.fromkeys(("a100-1", "a100-2", "a100-3", "a100-4", "a100-shared", "a100-sliced", "a100-mps"), (4, [])),
    "a100-mig": (4, ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]),
    "a100-mig-single": (4, ["1g.10gb"] * 7),
    "mig-sliced": (1, ["1g.10gb"] * 7),
    "h100": (8, []),
}


def test_every_simulated_node_with_gpus_of_nvidia_or_amd_has_an_exporter() -> None:
    read = hardware.read("mixed")
    slices = {one["spec"]["nodeName"]: [one] for one in read.slices}
    found = {
        node["metadata"]["name"]: gpu_node(node, slices.get(node["metadata"]["name"], ())) is not None
        for node in read.nodes
    }
    assert {name for name, has in found.items() if has} == {*NVIDIA_NODES, "mi300x", "mi300x-cpx"}
    real = {**read.nodes[0], "metadata": {**read.nodes[0]["metadata"], "annotations": {}}}
    assert gpu_node(real) is None, "a node that is not simulated has its own"


@pytest.mark.parametrize("name", NVIDIA_NODES)
def test_a_node_has_the_fields_and_labels_of_dcgm_for_each_card_or_instance(name: str) -> None:
    cards, profiles = NVIDIA_NODES[name]
    node = gpus_of(name)
    found = samples(node)
    for field, rows in found.items():
        in_parts = bool(profiles) and field in dcgm_text.OF_DEVICE
        extra = {"err_code", "err_msg"} if field == "DCGM_FI_DEV_XID_ERRORS" else set()
        assert {frozenset(row.labels) for row in rows} == {
            frozenset(OF_EVERY_ROW | extra | (OF_INSTANCE if in_parts else set()))
        }
        assert len(rows) == cards * (len(profiles) or 1 if in_parts else 1), field
        assert {row.labels["UUID"] for row in rows} == {card.uuid for card in node.cards}
    # MIG has no utilization of the whole card.
    missing = {*dcgm_text.OF_UNSPLIT_CARD} if profiles else set()
    assert found.keys() == dcgm_text.FIELDS.keys() - missing
    if profiles:
        first = [row.labels for row in found[ACTIVE] if row.labels["gpu"] == "0"]
        assert sorted(row["GPU_I_PROFILE"] for row in first) == profiles
        assert len({row["GPU_I_ID"] for row in first}) == len(profiles)


def test_counters_and_gauges_are_declared_as_dcgm_exporter_does() -> None:
    kinds = {family.name: family.type for family in text_string_to_metric_families(text(gpus_of("a100-1")))}
    counters = {name for name, kind in kinds.items() if kind == "counter"}
    assert counters == {
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    }
    assert set(kinds.values()) == {"counter", "gauge"}


@pytest.mark.parametrize(("name", "resource", "total_mib"), [
    ("a100-1", CARD, 81_920),
    ("a100-mig", "nvidia.com/mig-3g.40gb", 40_192),
    ("a100-mig-single", CARD, 9_856),
    ("a100-shared", "nvidia.com/gpu.shared", 81_920),
])  # fmt: skip
def test_used_free_and_reserved_memory_are_the_devices_memory(name: str, resource: str, total_mib: int) -> None:
    found = samples(gpus_of(name), [pod("one", resource, node=name), pod("two", resource, node=name)])
    devices = [{**row.labels} for row in found[USED]]
    sums = {
        index: sum(found[field][index].value for field in MEMORY)
        for index, labels in enumerate(devices)
        if labels.get("pod")
    }
    assert len(sums) == 2
    assert set(sums.values()) == {total_mib}
    assert all(found[USED][index].value > 0.05 * total_mib for index in sums)


def test_values_are_in_their_units() -> None:
    found = samples(gpus_of("a100-1"), [pod("train")])
    by_card = {name: values(rows) for name, rows in found.items()}
    assert 0.85 <= by_card[ACTIVE]["0"] <= 0.95
    assert by_card[UTIL]["0"] == round(100 * by_card[ACTIVE]["0"])
    assert 0 < by_card["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"]["0"] < by_card[ACTIVE]["0"]
    assert 300 < by_card["DCGM_FI_DEV_POWER_USAGE"]["0"] <= 400
    assert by_card["DCGM_FI_DEV_POWER_USAGE"]["1"] == 62
    assert 60 < by_card["DCGM_FI_DEV_GPU_TEMP"]["0"] < 80
    assert by_card["DCGM_FI_DEV_SM_CLOCK"] == {"0": 1410, "1": 210, "2": 210, "3": 210}
    assert by_card["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]["0"] == 1500, "1.5 J in mJ"
    assert (by_card[ACTIVE]["1"], by_card[USED]["1"]) == (0, 0)


def test_rows_of_a_pods_device_name_it_and_rows_of_a_free_one_name_nobody() -> None:
    found = samples(gpus_of("a100-1"), [pod("train", units=2)])
    for name, rows in found.items():
        named = {row.labels["gpu"]: {key: row.labels.get(key) for key in OF_POD} for row in rows}
        one = {"namespace": "team-a", "pod": "train", "container": "job"}
        nobody = dict.fromkeys(OF_POD)
        assert named == {"0": one, "1": one, "2": nobody, "3": nobody}, name


def test_an_instance_names_its_pod_and_the_sensors_of_its_card_name_nobody() -> None:
    found = samples(gpus_of("a100-mig"), [pod("infer", "nvidia.com/mig-2g.20gb", node="a100-mig")])
    [row] = [row for row in found[ACTIVE] if "pod" in row.labels]
    assert (row.labels["gpu"], row.labels["GPU_I_PROFILE"], row.labels["GPU_I_ID"]) == ("0", "2g.20gb", "3")
    assert row.value > 0.8
    power = found["DCGM_FI_DEV_POWER_USAGE"]
    assert [(len(row.labels), row.labels["gpu"]) for row in power] == [(len(OF_EVERY_ROW), str(n)) for n in range(4)]
    # A quarter of the card computes.
    assert 62 < power[0].value < 62 + 0.35 * (400 - 62)


@pytest.mark.parametrize(("name", "resource"), [
    ("a100-shared", "nvidia.com/gpu.shared"), ("a100-sliced", CARD), ("a100-mps", CARD)
])  # fmt: skip
def test_a_card_that_pods_share_has_one_row_for_one_of_them(name: str, resource: str) -> None:
    pods = [
        pod(f"share-{number}", resource, node=name, annotations={"devcluster/gpu-profile": "idle"})
        for number in range(8)
    ]
    found = samples(gpus_of(name), pods)
    for field, rows in found.items():
        assert Counter(row.labels["gpu"] for row in rows) == {"0": 1, "1": 1, "2": 1, "3": 1}, field
    assert [row.labels["pod"] for row in found[ACTIVE]] == ["share-0", "share-1", "share-2", "share-3"]
    pods[4]["metadata"]["annotations"] = {"devcluster/gpu-profile": "steady"}
    shared = samples(gpus_of(name), pods)[ACTIVE][0]
    assert (shared.labels["pod"], shared.value > 0.8) == ("share-0", True), "the row shows what all of them do"


def test_an_instance_of_a_time_sliced_card_has_one_row() -> None:
    pods = [pod(f"share-{number}", "nvidia.com/mig-1g.10gb", node="mig-sliced") for number in range(9)]
    rows = samples(gpus_of("mig-sliced"), pods)[ACTIVE]
    assert [row.labels["pod"] for row in rows] == [f"share-{number}" for number in range(7)]


def test_a_device_of_a_claim_is_the_one_that_the_scheduler_allocated() -> None:
    node = gpus_of("h100")
    result = {"driver": "gpu.nvidia.com", "pool": "h100", "device": "gpu-5", "request": "gpus"}
    claim = {
        "metadata": {"name": "train-devices"},
        "status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": [{"uid": "uid-train"}]},
    }
    found = samples(node, [pod("train", "cpu", node="h100")], claims=[claim])
    [row] = [row for row in found[ACTIVE] if "pod" in row.labels]
    assert row.labels["gpu"] == "5"
    assert row.labels.keys() == OF_EVERY_ROW | OF_POD | OF_CLAIM
    assert (row.labels["dra_claim_name"], row.labels["dra_device_name"]) == ("train-devices", "gpu-5")
    assert row.labels["pci_bus_id"] == "00000000:C3:00.0"


def test_devices_of_two_classes_in_one_slice_are_a_card_and_the_instances_of_another() -> None:
    rows = samples(gpus_of("dra-mig", "dra"))[ACTIVE]
    assert [(row.labels["gpu"], row.labels.get("GPU_I_PROFILE"), row.labels.get("GPU_I_ID")) for row in rows] == [
        ("0", None, None),
        ("1", "1g.10gb", "7"),
        ("1", "1g.10gb", "8"),
        ("1", "3g.40gb", "1"),
        ("1", "3g.40gb", "2"),
    ]


def test_a_notebook_is_as_busy_as_its_processes() -> None:
    pods = [notebook("computing"), notebook("left-alone"), pod("waiting", phase="Pending")]
    found = samples(gpus_of("a100-1"), pods, cores={"uid-computing": 1.7, "uid-left-alone": 0.02})
    active, used = values(found[ACTIVE]), values(found[USED])
    named = {row.labels["gpu"]: row.labels.get("pod") for row in found[ACTIVE]}
    by_pod = {named[gpu]: (active[gpu], used[gpu]) for gpu in active}
    assert by_pod["computing"][0] > 0.85
    assert by_pod["left-alone"][0] <= 0.02
    assert by_pod["left-alone"][1] > 5_000, "an idle kernel keeps its memory"
    assert by_pod["waiting"] == (0, 0), "nothing runs yet"


FAULTS = "0=xid:79, 1=thermal,2=ecc:3,0=nvlink:7,3=remap,3=xid:48,9=thermal,nonsense"


def test_faults_show_in_the_fields_of_their_card_only() -> None:
    found = {name: values(rows) for name, rows in samples(gpus_of("a100-1"), faults=FAULTS).items()}
    assert found["DCGM_FI_DEV_XID_ERRORS"] == {"0": 79, "1": 0, "2": 0, "3": 48}
    assert found["DCGM_FI_DEV_GPU_TEMP"] == {"0": 31, "1": 93, "2": 31, "3": 31}
    assert found["DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"] == {"0": 0, "1": 0, "2": 3, "3": 0}
    assert found["DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"] == {"0": 0, "1": 0, "2": 3, "3": 8}
    assert found["DCGM_FI_DEV_ROW_REMAP_FAILURE"] == {"0": 0, "1": 0, "2": 0, "3": 1}
    assert found["DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"] == {"0": 7, "1": 0, "2": 0, "3": 0}
    assert found["DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"] == {"0": 0, "1": 64, "2": 0, "3": 0}
    [xid, *_] = samples(gpus_of("a100-1"), faults=FAULTS)["DCGM_FI_DEV_XID_ERRORS"]
    assert (xid.labels["err_code"], xid.labels["err_msg"]) == ("79", "GPU has fallen off the bus")


AMD_LABELS = {
    "gpu_id", "card_model", "gpu_partition_id", "gpu_compute_partition_type", "gpu_memory_partition_type",
    "deployment_mode", "serial_number", "pod", "namespace", "container", "job_id", "job_user", "job_partition",
    "hostname",
}  # fmt: skip


def test_a_node_of_amd_has_the_metrics_of_its_exporter() -> None:
    found = samples(gpus_of("mi300x"), [pod("train", "amd.com/gpu", node="mi300x")])
    assert found.pop("gpu_nodes_total")[0].value == 8
    clocks = {frozenset(row.labels) for row in found.pop("gpu_clock")}
    assert clocks == {frozenset(AMD_LABELS | {"clock_index", "clock_type"})}
    assert found.keys() == amd_text.FIELDS.keys() - {"gpu_clock"}
    assert {frozenset(row.labels) for rows in found.values() for row in rows} == {frozenset(AMD_LABELS)}
    by_card = {name: values(rows, "gpu_id") for name, rows in found.items()}
    assert {row.labels["gpu_id"]: row.labels["pod"] for row in found["gpu_gfx_activity"]} == {
        str(number): "" if number else "train" for number in range(8)
    }
    assert 85 <= by_card["gpu_gfx_activity"]["0"] <= 95, "percent"
    assert by_card["gpu_energy_consumed"]["0"] == 1_500_000, "1.5 J in µJ"
    for card in map(str, range(8)):
        assert by_card["gpu_used_vram"][card] + by_card["gpu_free_vram"][card] == by_card["gpu_total_vram"][card]
    sick = samples(gpus_of("mi300x"), faults="2=ecc:1")
    assert values(sick["gpu_health"], "gpu_id") == {str(number): float(number != 2) for number in range(8)}


def test_only_the_first_partition_of_an_amd_card_has_its_sensors() -> None:
    found = samples(gpus_of("mi300x-cpx"), [pod("part", "amd.com/cpx_nps4", 3, node="mi300x-cpx")])
    assert len(found["gpu_used_vram"]) == 64
    assert {row.value for row in found["gpu_total_vram"]} == {196_592 // 8}
    assert [row.labels["gpu_partition_id"] for row in found["gpu_gfx_activity"]] == ["0"] * 8
    assert [row.labels["gpu_id"] for row in found["gpu_used_vram"] if row.value] == ["0", "1", "2"]
    power = [row.value for row in found["gpu_package_power"]]
    assert power[0] > power[8] == 142
    assert power[1:8] == [0] * 7


def test_the_same_question_has_the_same_answer() -> None:
    node, pods = gpus_of("a100-1"), [pod("train"), pod("other")]
    assert text(node, pods) == text(node, pods)
    assert text(node, pods) != text(node, pods, at=AT + 15)
