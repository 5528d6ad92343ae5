"""What a class of each kind guarantees, in sentences that are true and complete."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from catalog.contract.guarantees import contract_of
from catalog.contract.types import Axes, Contract, Guarantee, gib

TOPICS = ["Memory", "Compute", "Fault isolation", "Jitter", "Telemetry", "Preemption"]


def axes(**values: Any) -> Axes:
    usual = {"vendor": "nvidia", "partition": "none", "sharing": "none", "replicas": 1, "memory_mib": 81920}
    return Axes(**{**usual, "interface": "device-plugin", "resource": "nvidia.com/gpu", **values})


KINDS = {
    "whole GPU": axes(),
    "MIG single": axes(partition="1g.10gb", memory_mib=9856),
    "MIG mixed": axes(partition="1g.10gb", memory_mib=9856, resource="nvidia.com/mig-1g.10gb"),
    "MIG +me": axes(partition="1g.10gb.me", memory_mib=9856, resource="nvidia.com/mig-1g.10gb.me"),
    "time-slicing": axes(sharing="time-slicing", replicas=4),
    "time-slicing, renamed": axes(sharing="time-slicing", replicas=4, resource="nvidia.com/gpu.shared"),
    "time-slicing of two": axes(sharing="time-slicing", replicas=2),
    "MPS": axes(sharing="mps", replicas=8, memory_mib=10240),
    "MPS, memory unknown": axes(sharing="mps", replicas=3, memory_mib=None),
    "MIG time-sliced": axes(
        partition="1g.10gb",
        sharing="time-slicing",
        replicas=4,
        memory_mib=9856,
        resource="nvidia.com/mig-1g.10gb",
        slices_on_gpu=7,
    ),
    "A30 MIG time-sliced": axes(partition="1g.6gb", sharing="time-slicing", replicas=8, slices_on_gpu=4),
    "MIG time-sliced, unknown GPU": axes(partition="2g.99gb", sharing="time-slicing", replicas=3),
    "DRA": axes(interface="dra", resource="dra.portal/h100"),
    "DRA slice": axes(interface="dra", partition="1g.10gb+me", resource="dra.portal/mig"),
    "DRA shared": axes(interface="dra", sharing="time-slicing", replicas=2, resource="dra.portal/h100"),
    "AMD": axes(vendor="amd", resource="amd.com/gpu"),
    "AMD partition": axes(vendor="amd", partition="cpx_nps4", memory_mib=None, resource="amd.com/cpx_nps4"),
    "AMD partition, one memory": axes(vendor="amd", partition="cpx_nps1", memory_mib=None),
    "Intel": axes(vendor="intel", memory_mib=None, resource="gpu.intel.com/xe"),
    "Intel shared": axes(vendor="intel", sharing="time-slicing", replicas=10, memory_mib=None),
    "Gaudi": axes(vendor="habana", memory_mib=None, resource="habana.ai/gaudi"),
    "a vendor to come": axes(vendor="example", memory_mib=None, resource="example.com/gpu"),
    "CPU": axes(vendor="", memory_mib=None, interface="none", resource=""),
}
TIME_SLICED = [name for name, one in KINDS.items() if one.sharing == "time-slicing"]


def levels(kind: str) -> dict[str, str]:
    return {promise.topic: promise.level for promise in contract_of(KINDS[kind]).promises}


def said(kind: str, topic: str) -> Guarantee:
    return next(promise for promise in contract_of(KINDS[kind]).promises if promise.topic == topic)


def sentences(of: Contract) -> list[str]:
    """Returns every sentence that a user reads about the class; a promise as lead, text and reason."""
    told = [f"{one.lead}: {one.text} {one.reason}" for one in of.promises]
    return [*told, of.neighbours, *of.suits, *of.avoid, *of.expected, *of.incident]


# ---- guarantees of every kind of class -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_promise_has_a_sentence_and_its_reason(kind: str) -> None:
    assert [promise.topic for promise in contract_of(KINDS[kind]).promises] == TOPICS
    for promise in contract_of(KINDS[kind]).promises:
        assert promise.level in ("yes", "part", "no")
        assert promise.lead
        assert not promise.lead.endswith((".", ":"))
        for words in (promise.text, promise.reason):
            assert re.fullmatch(r"\S.*[^.\s]\.", words), words


@pytest.mark.parametrize("kind", KINDS)
def test_support_and_people_who_choose_find_whole_sentences_with_a_reason(kind: str) -> None:
    found = contract_of(KINDS[kind])
    assert re.fullmatch(r"\S.*[^.\s]\.", found.neighbours)
    for told in (found.suits, found.avoid, found.expected, found.incident):
        assert told
        assert len(set(told)) == len(told)
        for sentence in told:
            # First the statement, then its reason: after a colon, a comma or in brackets.
            assert re.fullmatch(r"[A-Z0-9].*[:(].*[^.\s]\.", sentence), sentence


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_of_spot_nodes_says_so_and_changes_no_other_sentence(kind: str) -> None:
    usual, spot = contract_of(KINDS[kind]), contract_of(replace(KINDS[kind], is_spot=True))
    assert not [one for one in sentences(usual) if "spot" in one]
    assert [one.topic for one in spot.promises] == [*TOPICS, "Spot nodes"]
    assert (spot.promises[-1].level, spot.tier) == ("no", usual.tier)
    added = [one for one in sentences(spot) if one not in sentences(usual)]
    assert len(added) == 4
    assert len(sentences(spot)) == len(sentences(usual)) + 4
    for sentence in added[1:]:
        assert re.fullmatch(r"[A-Z0-9].*[:(].*[^.\s]\.", sentence), sentence


@pytest.mark.parametrize("kind", KINDS)
def test_no_sentence_shows_a_value_that_is_missing(kind: str) -> None:
    leaked = re.compile(r"(?<!^)None|\b(of|mode|slice) none\b|  | ,")
    assert not [one for one in sentences(contract_of(KINDS[kind])) if leaked.search(one)]


# ---- claims that must not appear -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TIME_SLICED)
def test_time_slicing_is_never_called_a_fraction_of_a_gpu(kind: str) -> None:
    fraction = re.compile(
        r"\d+\s*/\s*\d+|%|percent|\b(half|third|quarter|fourth|fifth|eighth|tenth|fraction)\b|\bpart of (a|the|one)\b",
        re.I,
    )
    for sentence in sentences(contract_of(KINDS[kind])):
        assert not fraction.search(re.sub(r"not a fraction of a (GPU|slice)", "", sentence)), sentence
    assert "not a fraction of a" in said(kind, "Compute").text


@pytest.mark.parametrize("kind", TIME_SLICED)
def test_time_slicing_guarantees_nothing_about_other_pods(kind: str) -> None:
    assert {level for topic, level in levels(kind).items() if topic != "Preemption"} == {"no"}


# ---- guarantees by kind of class -----------------------------------------------------------------------------------

ISOLATION = {
    "whole GPU": ("yes", "yes", "yes"),
    "DRA": ("yes", "yes", "yes"),
    "AMD": ("yes", "yes", "yes"),
    "Intel": ("yes", "yes", "yes"),
    "Gaudi": ("yes", "yes", "yes"),
    "MIG single": ("yes", "yes", "part"),
    "MIG mixed": ("yes", "yes", "part"),
    "DRA slice": ("yes", "yes", "part"),
    "AMD partition": ("part", "yes", "part"),
    "MPS": ("part", "part", "no"),
    "Intel shared": ("no", "no", "no"),
    "DRA shared": ("no", "no", "no"),
    "CPU": ("yes", "yes", "part"),
}


@pytest.mark.parametrize(("kind", "expected"), ISOLATION.items())
def test_isolation_of_memory_compute_and_faults(kind: str, expected: tuple[str, ...]) -> None:
    assert tuple(levels(kind)[topic] for topic in TOPICS[:3]) == expected


NEIGHBOURS = {
    "whole GPU": "Not shared.",
    "DRA": "Not shared.",
    "MIG mixed": "Not shared; other slices of the same GPU have other users.",
    "AMD partition": "Not shared; other partitions of the same GPU have other users.",
    "time-slicing": "Shared with up to 3 other pods.",
    "time-slicing of two": "Shared with up to 1 other pod.",
    "MIG time-sliced": "Shared with up to 3 other pods on one slice.",
    "MPS": "Shared with up to 7 other pods: 8 clients per GPU.",
    "Intel shared": "Shared with up to 9 other pods.",
    "DRA shared": "Shared with up to 1 other pod.",
    "CPU": "Other pods run on the same node; your cores and memory are reserved.",
}


@pytest.mark.parametrize(("kind", "expected"), NEIGHBOURS.items())
def test_how_many_neighbours_there_can_be(kind: str, expected: str) -> None:
    assert contract_of(KINDS[kind]).neighbours == expected


def test_only_what_is_experimental_is_a_pilot() -> None:
    pilots = {kind for kind, one in KINDS.items() if contract_of(one).tier == "pilot"}
    assert pilots == {"MPS", "MPS, memory unknown", "DRA shared", "DRA", "DRA slice"}
    for kind in ("DRA", "DRA slice", "DRA shared"):
        assert any("technology preview" in sentence for sentence in contract_of(KINDS[kind]).avoid), kind
    assert any("experimental" in sentence for sentence in contract_of(KINDS["MPS"]).avoid)
    assert "experimental" in said("DRA shared", "Compute").reason


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("whole GPU", "all 80 GiB."),
        ("Gaudi", "all memory of the GPU."),
        ("MIG mixed", "9.6 GiB, in hardware."),
        ("time-slicing", "up to 3 other pods use the same 80 GiB; any of them can fill it."),
        ("time-slicing of two", "up to 1 other pod uses the same 80 GiB; any of them can fill it."),
        ("MIG time-sliced", "up to 3 other pods use the same 9.6 GiB; any of them can fill it."),
        ("Intel shared", "up to 9 other pods use the same memory; any of them can fill it."),
        ("MPS", "at most 10 GiB per client, enforced by the driver, not by hardware."),
        ("MPS, memory unknown", "at most 1/3 of the GPU memory per client, enforced by the driver, not by hardware."),
        ("AMD partition", "what the mode cpx_nps4 gives one partition, enforced by the driver."),
    ],
)
def test_memory_is_said_in_figures_where_nodes_report_it(kind: str, expected: str) -> None:
    assert said(kind, "Memory").text == expected


def test_mps_names_its_limits() -> None:
    assert said("MPS", "Compute").text == "at most 12.5 % of the threads; caches are shared."
    assert "divided by 8" in said("MPS", "Memory").reason
    assert said("MPS", "Fault isolation").text == "a fatal fault can terminate all 8 clients of the GPU."
    assert "33.3 %" in said("MPS, memory unknown", "Compute").text


def test_a_time_sliced_slice_shares_one_slice_and_its_units_are_explained() -> None:
    assert said("MIG time-sliced", "Compute").text.startswith("not a fraction of a slice;")
    assert "Pods on other slices of the GPU remain isolated." in said("MIG time-sliced", "Memory").reason
    units = "\n".join(contract_of(KINDS["MIG time-sliced"]).expected)
    assert "7 slices on a GPU are 28 units, and each unit is shared access to one slice." in units


def test_units_of_a_slice_are_counted_by_the_slices_of_its_own_gpu() -> None:
    units = "\n".join(contract_of(KINDS["A30 MIG time-sliced"]).expected)
    assert "4 slices on a GPU are 32 units, and" in units
    unknown = "\n".join(contract_of(KINDS["MIG time-sliced, unknown GPU"]).expected)
    assert "each slice is advertised 3 times, and each unit" in unknown


def test_a_time_sliced_slice_is_measured_by_the_slice() -> None:
    told = said("MIG time-sliced", "Telemetry")
    assert told.lead == "Whole slice only"
    assert told.reason.startswith("The driver measures memory and activity of each slice,")
    assert said("time-slicing", "Telemetry").lead == "Whole GPU only"
    expected = "\n".join(contract_of(KINDS["MIG time-sliced"]).expected)
    assert "same utilisation" not in expected
    assert "No utilisation in nvidia-smi" in expected


@pytest.mark.parametrize("kind", [*TIME_SLICED, "MPS"])
def test_nothing_is_claimed_that_depends_on_a_setting_of_the_device_plugin(kind: str) -> None:
    """Whether it refuses 2 units depends on failRequestsGreaterThanOne. The portal gives a workload 1 in any case."""
    told = sentences(contract_of(KINDS[kind]))
    assert not [one for one in told if "refused" in one]
    assert [one for one in told if one.startswith("Only 1 unit per workload:")]


def test_more_than_four_time_slices_are_warned_of() -> None:
    assert not [one for one in contract_of(KINDS["time-slicing"]).avoid if "each waits for" in one]
    assert [one for one in contract_of(KINDS["A30 MIG time-sliced"]).avoid if "each waits for 7 others" in one]


def test_a_shared_gpu_explains_why_there_are_more_units_than_gpus() -> None:
    told = "More units than GPUs: each GPU is advertised 4 times, and each unit is shared access to one GPU."
    assert told in contract_of(KINDS["time-slicing"]).expected


def test_a_slice_says_by_which_name_it_is_requested() -> None:
    assert any("(MIG strategy single)" in one for one in contract_of(KINDS["MIG single"]).expected)
    named = next(one for one in contract_of(KINDS["MIG mixed"]).expected if "(MIG strategy mixed)" in one)
    assert "nvidia.com/mig-1g.10gb (" in named
    assert any("claim that stays pending" in one for one in contract_of(KINDS["DRA slice"]).expected)


@pytest.mark.parametrize(
    ("partition", "has_media"),
    [("1g.10gb.me", True), ("1g.10gb+me", True), ("1g.24gb-me", False), ("1g.24gb+me.all", True), ("1g.24gb", False)],
)
def test_media_engines_belong_to_the_slice_that_is_named_for_them(partition: str, has_media: bool) -> None:
    text = next(one for one in contract_of(axes(partition=partition)).promises if one.topic == "Compute").text
    assert ("with media engines" in text) is has_media


@pytest.mark.parametrize(
    ("partition", "has_graphics"), [("1g.24gb.gfx", True), ("2g.48gb+gfx", True), ("1g.24gb", False)]
)
def test_graphics_belong_to_the_slice_that_is_named_for_them(partition: str, has_graphics: bool) -> None:
    text = next(one for one in contract_of(axes(partition=partition)).promises if one.topic == "Compute").text
    assert ("with graphics APIs" in text) is has_graphics


def test_intels_plugin_counts_and_does_nothing_else() -> None:
    assert "only counts" in said("Intel shared", "Compute").reason


def test_an_amd_partition_shares_memory_stacks_by_its_memory_mode() -> None:
    assert "groups of partitions" in said("AMD partition", "Memory").reason
    assert "all partitions of a GPU" in said("AMD partition, one memory", "Memory").reason


@pytest.mark.parametrize("kind", ["AMD", "AMD partition", "Intel", "Gaudi"])
def test_who_brings_a_cuda_image_is_warned(kind: str) -> None:
    assert any(one.startswith("Programs built for CUDA:") for one in contract_of(KINDS[kind]).avoid)


def test_a_gpu_by_claim_says_what_reserves_it() -> None:
    assert "ResourceClaim" in said("DRA", "Memory").reason
    assert "device plugin" in said("whole GPU", "Memory").reason


def test_sizes_are_rounded_to_what_people_read() -> None:
    assert (gib(81920), gib(9856)) == ("80 GiB", "9.6 GiB")
