"""What each way to have a card, or a part of one, promises: in words that are true and whole."""

from __future__ import annotations

import re
from typing import Any

import pytest

from catalog.contract.guarantees import contract_of
from catalog.contract.types import Axes, Contract, Guarantee, gib

TOPICS = ["Memory", "Compute", "Faults", "Jitter", "Telemetry", "Interruption"]


def axes(**values: Any) -> Axes:
    usual = {"vendor": "nvidia", "partition": "none", "sharing": "none", "replicas": 1, "memory_mib": 81920}
    return Axes(**{**usual, "interface": "device-plugin", "resource": "nvidia.com/gpu", **values})


KINDS = {
    "whole card": axes(),
    "MIG single": axes(partition="1g.10gb", memory_mib=9856),
    "MIG mixed": axes(partition="1g.10gb", memory_mib=9856, resource="nvidia.com/mig-1g.10gb"),
    "MIG +me": axes(partition="1g.10gb.me", memory_mib=9856, resource="nvidia.com/mig-1g.10gb.me"),
    "time-slicing": axes(sharing="time-slicing", replicas=4),
    "time-slicing, renamed": axes(sharing="time-slicing", replicas=4, resource="nvidia.com/gpu.shared"),
    "time-slicing of two": axes(sharing="time-slicing", replicas=2),
    "MPS": axes(sharing="mps", replicas=8, memory_mib=10240),
    "MPS, memory unknown": axes(sharing="mps", replicas=3, memory_mib=None),
    "MIG in turns": axes(
        partition="1g.10gb", sharing="time-slicing", replicas=4, memory_mib=9856, resource="nvidia.com/mig-1g.10gb"
    ),
    "DRA": axes(interface="dra", resource="dra.portal/h100"),
    "DRA slice": axes(interface="dra", partition="1g.10gb+me", resource="dra.portal/mig"),
    "DRA shared": axes(interface="dra", sharing="time-slicing", replicas=2, resource="dra.portal/h100"),
    "AMD": axes(vendor="amd", resource="amd.com/gpu"),
    "AMD partition": axes(vendor="amd", partition="cpx_nps4", memory_mib=None, resource="amd.com/cpx_nps4"),
    "AMD partition, one memory": axes(vendor="amd", partition="cpx_nps1", memory_mib=None),
    "Intel": axes(vendor="intel", memory_mib=None, resource="gpu.intel.com/xe"),
    "Intel shared": axes(vendor="intel", sharing="time-slicing", replicas=10, memory_mib=None),
    "Gaudi": axes(vendor="habana", memory_mib=None, resource="habana.ai/gaudi"),
    "a vendor to come": axes(vendor="example", memory_mib=None, resource="example.com/card"),
    "CPU": axes(vendor="", memory_mib=None, interface="none", resource=""),
}
IN_TURNS = [name for name, one in KINDS.items() if one.sharing == "time-slicing"]


def levels(kind: str) -> dict[str, str]:
    return {promise.topic: promise.level for promise in contract_of(KINDS[kind]).promises}


def said(kind: str, topic: str) -> Guarantee:
    return next(promise for promise in contract_of(KINDS[kind]).promises if promise.topic == topic)


def sentences(of: Contract) -> list[str]:
    """Everything a person reads of it, a promise as lead, text and reason."""
    told = [f"{one.lead}: {one.text} {one.reason}" for one in of.promises]
    return [*told, of.neighbours, *of.suits, *of.avoid, *of.expected, *of.incident]


# ---- every kind of class -------------------------------------------------------------------------------------------


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
            # What is said, then why: after a colon, a comma or in brackets.
            assert re.fullmatch(r"[A-Z0-9].*[:(].*[^.\s]\.", sentence), sentence


@pytest.mark.parametrize("kind", KINDS)
def test_no_sentence_shows_a_value_that_is_missing(kind: str) -> None:
    leaked = re.compile(r"None(?! from neighbours)|\b(of|mode|slice) none\b|  | ,")
    assert not [one for one in sentences(contract_of(KINDS[kind])) if leaked.search(one)]


# ---- what must never be said ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", IN_TURNS)
def test_taking_turns_is_never_called_a_fraction_of_a_card(kind: str) -> None:
    fraction = re.compile(
        r"\d+\s*/\s*\d+|%|percent|\b(half|third|quarter|fourth|fifth|eighth|tenth|fraction)\b|\bpart of (a|the|one)\b",
        re.I,
    )
    for sentence in sentences(contract_of(KINDS[kind])):
        assert not fraction.search(re.sub(r"not a part of a (card|slice)", "", sentence)), sentence
    assert "not a part of a" in said(kind, "Compute").text


@pytest.mark.parametrize("kind", IN_TURNS)
def test_taking_turns_promises_nothing_about_neighbours(kind: str) -> None:
    assert {level for topic, level in levels(kind).items() if topic != "Interruption"} == {"no"}


# ---- kind by kind --------------------------------------------------------------------------------------------------

ISOLATION = {
    "whole card": ("yes", "yes", "yes"),
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
    "whole card": "Shared with nobody.",
    "DRA": "Shared with nobody.",
    "MIG mixed": "Shared with nobody; other slices of the same card have users of their own.",
    "AMD partition": "Shared with nobody; other partitions of the same card have users of their own.",
    "time-slicing": "Shared with up to 3 others.",
    "time-slicing of two": "Shared with up to 1 other.",
    "MIG in turns": "Shared with up to 3 others on one slice.",
    "MPS": "Shared with up to 7 others: 8 clients per card.",
    "Intel shared": "Shared with up to 9 others.",
    "DRA shared": "Shared with up to 1 other.",
    "CPU": "Other pods run on the same node; your cores and memory are reserved.",
}


@pytest.mark.parametrize(("kind", "expected"), NEIGHBOURS.items())
def test_how_many_neighbours_there_can_be(kind: str, expected: str) -> None:
    assert contract_of(KINDS[kind]).neighbours == expected


def test_only_what_is_experimental_is_a_pilot() -> None:
    pilots = {kind for kind, one in KINDS.items() if contract_of(one).tier == "pilot"}
    assert pilots == {"MPS", "MPS, memory unknown", "DRA shared"}
    assert any("experimental" in sentence for sentence in contract_of(KINDS["MPS"]).avoid)
    assert "experimental" in said("DRA shared", "Compute").reason


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("whole card", "all 80 GiB."),
        ("Gaudi", "all of the card."),
        ("MIG mixed", "9.6 GiB, fenced in hardware."),
        ("time-slicing", "up to 3 others use the same 80 GiB; one of them can fill it."),
        ("time-slicing of two", "up to 1 other uses the same 80 GiB; one of them can fill it."),
        ("MIG in turns", "up to 3 others use the same 9.6 GiB; one of them can fill it."),
        ("Intel shared", "up to 9 others use the same memory; one of them can fill it."),
        ("MPS", "at most 10 GiB each, by the driver and not by hardware."),
        ("MPS, memory unknown", "at most 1/3 of the card each, by the driver and not by hardware."),
        ("AMD partition", "what the mode cpx_nps4 gives one partition, by the driver."),
    ],
)
def test_memory_is_said_in_figures_where_nodes_report_it(kind: str, expected: str) -> None:
    assert said(kind, "Memory").text == expected


def test_mps_names_its_limits() -> None:
    assert said("MPS", "Compute").text == "at most 12.5 % of the threads; caches are shared."
    assert "divided by 8" in said("MPS", "Memory").reason
    assert said("MPS", "Faults").text == "a fatal fault can end all 8 clients of the card."
    assert "33.3 %" in said("MPS, memory unknown", "Compute").text


def test_a_shared_slice_takes_turns_on_one_slice_and_units_are_explained() -> None:
    assert said("MIG in turns", "Compute").text.startswith("not a part of a slice;")
    assert "fence around the slice holds" in said("MIG in turns", "Memory").reason
    units = next(one for one in contract_of(KINDS["MIG in turns"]).expected if one.startswith("More units"))
    assert "7 slices on a card are 28 units, and every unit is a turn on one slice." in units


def test_a_shared_card_explains_why_there_are_more_units_than_cards() -> None:
    told = "More units than cards: each card is counted 4 times, and every unit is a turn on one."
    assert told in contract_of(KINDS["time-slicing"]).expected


def test_a_slice_says_by_which_name_it_is_requested() -> None:
    assert any("(MIG strategy single)" in one for one in contract_of(KINDS["MIG single"]).expected)
    named = next(one for one in contract_of(KINDS["MIG mixed"]).expected if "(MIG strategy mixed)" in one)
    assert "nvidia.com/mig-1g.10gb (" in named
    assert any("claim that stays pending" in one for one in contract_of(KINDS["DRA slice"]).expected)


@pytest.mark.parametrize(
    ("partition", "has_media"), [("1g.10gb.me", True), ("1g.10gb+me", True), ("1g.24gb-me", False), ("1g.24gb", False)]
)
def test_media_engines_belong_to_the_slice_that_is_named_for_them(partition: str, has_media: bool) -> None:
    text = next(one for one in contract_of(axes(partition=partition)).promises if one.topic == "Compute").text
    assert ("with the media engines" in text) is has_media


def test_intels_plugin_counts_and_does_nothing_else() -> None:
    assert "only counts" in said("Intel shared", "Compute").reason


def test_an_amd_partition_shares_memory_stacks_by_its_memory_mode() -> None:
    assert "groups of partitions" in said("AMD partition", "Memory").reason
    assert "all partitions of a card" in said("AMD partition, one memory", "Memory").reason


@pytest.mark.parametrize("kind", ["AMD", "AMD partition", "Intel", "Gaudi"])
def test_who_brings_a_cuda_image_is_warned(kind: str) -> None:
    assert any(one.startswith("Programs built for CUDA:") for one in contract_of(KINDS[kind]).avoid)


def test_a_card_by_claim_says_who_holds_it() -> None:
    assert "resource claim" in said("DRA", "Memory").reason
    assert "device plugin" in said("whole card", "Memory").reason


def test_sizes_are_rounded_to_what_people_read() -> None:
    assert (gib(81920), gib(9856)) == ("80 GiB", "9.6 GiB")
