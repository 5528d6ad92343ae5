"""Which class is recommended in which situation, with which sentence; and a clear answer where no class fits."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest

from catalog.contract.types import Axes
from catalog.discovery.products import has_fp8, video_engines
from catalog.guide.recommendation import CHANGE, KEEP_EXCLUSIVE, recommend
from catalog.guide.requirements import (
    BATCH,
    DECODE,
    ENCODE,
    INTERACTIVE,
    INTERCONNECT,
    LATENCY,
    SERVING,
    ClassOption,
    Requirements,
)
from catalog.guide.types import Recommendation

GB10, GB40, GB80 = 9537, 38147, 76294
WHOLE = Axes("nvidia", "none", "none", 1, 81920, "device-plugin", "nvidia.com/gpu")

A100 = ClassOption(
    "a100", "A100 80GB", WHOLE, interconnect="nvswitch", price=Decimal("2.4"),
    free=3, most_on_one_node=2, largest_node=8, granted=4, left=2, fp8=False,
)  # fmt: skip
SLICE = ClassOption(
    "a100-1g", "A100 1g.10gb", replace(WHOLE, partition="1g.10gb", memory_mib=9856), unit="slice", units_per_workload=7,
    price=Decimal("0.38"), free=12, most_on_one_node=7, largest_node=16, granted=6, left=3, fp8=False,
)  # fmt: skip
LARGE_SLICE = replace(
    SLICE, slug="a100-3g", name="A100 3g.40gb", price=Decimal("1.2"),
    axes=replace(WHOLE, partition="3g.40gb", memory_mib=40192),
)  # fmt: skip
TURNS = ClassOption(
    "a100-turns", "A100 in turns", replace(WHOLE, sharing="time-slicing", replicas=4), unit="share",
    units_per_workload=1, price=Decimal("0.5"), free=7, most_on_one_node=4, largest_node=16, granted=4, left=4,
)  # fmt: skip
MPS = ClassOption(
    "a100-mps", "A100 MPS", replace(WHOLE, sharing="mps", replicas=8, memory_mib=10240), unit="share",
    units_per_workload=1, price=Decimal("0.3"), free=11, most_on_one_node=8, largest_node=16, granted=2, left=2,
)  # fmt: skip
H100 = ClassOption(
    "h100", "H100 80GB", replace(WHOLE, memory_mib=81559, interface="dra"), interconnect="nvlink", price=Decimal("3.9"),
    free=5, most_on_one_node=3, largest_node=8, granted=0, fp8=True,
)  # fmt: skip
MI300X = ClassOption(
    "mi300x", "MI300X", Axes("amd", "none", "none", 1, 196608, "device-plugin", "amd.com/gpu"), price=Decimal("3.2"),
    free=6, most_on_one_node=6, largest_node=8, granted=0, fp8=True,
)  # fmt: skip
CPU = ClassOption(
    "cpu", "CPU only", Axes("", "none", "none", 1, None, "none"), unit="core", free=100, granted=4, left=4
)
ALL = (A100, SLICE, LARGE_SLICE, TURNS, MPS, H100, MI300X, CPU)


def best(needs: Requirements, *options: ClassOption) -> str:
    found = recommend(needs, options or ALL)
    return found.best.slug if found.best else ""


def why(advice: Recommendation, slug: str) -> str:
    return next(one.why for one in advice.others if one.slug == slug)


# ---- recommended class per situation --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("situation", "needs", "expected"),
    [
        ("a small notebook of one's own", Requirements(GB10), "a100-1g"),
        ("a notebook too large for the small slice", Requirements(GB40), "a100-3g"),
        ("a notebook that needs a card", Requirements(GB80), "a100"),
        ("a notebook that may have neighbours", Requirements(GB10, own_part=False), "a100-turns"),
        ("small servers that may have neighbours", Requirements(GB10, own_part=False, work=SERVING), "a100-mps"),
        ("a batch that may have neighbours", Requirements(GB10, own_part=False, work=BATCH), "a100-1g"),
        ("days at a notebook with neighbours", Requirements(GB10, own_part=False, long=True), "a100-1g"),
        ("many small steady processes", Requirements(4096, own_part=False, small_processes=True), "a100-mps"),
        ("many small processes, each on its own", Requirements(4096, small_processes=True), "a100-1g"),
        (
            "in time, whoever else is there",
            Requirements(GB10, own_part=False, work=SERVING, sensitive=LATENCY),
            "a100-1g",
        ),
        ("two cards for one job", Requirements(GB10, work=BATCH, cards=2), "a100"),
        ("two cards that talk much", Requirements(GB80, work=BATCH, cards=2, sensitive=INTERCONNECT), "a100"),
        ("several nodes asked, one is enough", Requirements(GB80, work=BATCH, cards=4, several_nodes=True), "a100"),
        ("more than a card of 80 GB has", Requirements(81920, or_more=True), "mi300x"),
        ("FP8", Requirements(GB40, fp8=True), "h100"),
        ("FP8 from AMD", Requirements(GB40, fp8=True, vendor="amd"), "mi300x"),
        ("attributes", Requirements(GB40, dra=True), "h100"),
        ("a notebook whose peak nobody knows", Requirements(), "a100-1g"),
        ("hours whose peak nobody knows", Requirements(work=BATCH), "a100-1g"),
    ],
)
def test_one_situation_one_class(situation: str, needs: Requirements, expected: str) -> None:
    assert best(needs) == expected, situation


def test_the_order_in_which_classes_are_given_does_not_matter() -> None:
    twin = replace(SLICE, slug="a100-1g-other")
    for order in permutations((SLICE, twin, A100, TURNS)):
        found = recommend(Requirements(GB10), order)
        assert (found.best and found.best.slug, found.runner_up and found.runner_up.slug) == ("a100-1g", twin.slug)


# ---- GPU memory ------------------------------------------------------------------------------------------------------


def test_what_fits_is_told_with_what_is_to_spare() -> None:
    found = recommend(Requirements(GB10), ALL)
    assert found.reasons[0] == "9.6 GiB of GPU memory: your peak of 9.3 GiB (10 GB) fits, with 0.3 GiB to spare."
    assert found.trade_off == (
        "only the compute of 1g.10gb, and no traffic between GPUs (NCCL). "
        "Only 0.3 GiB to spare: a larger batch runs out of memory."
    )


def test_ten_gib_do_not_fit_a_slice_that_is_called_ten_gb() -> None:
    assert best(Requirements(10 * 1024)) == "a100-3g"
    assert why(recommend(Requirements(10 * 1024), ALL), "a100-1g") == "It has 9.6 GiB of GPU memory; 10 GiB is needed."


def test_the_peak_may_be_all_of_the_memory() -> None:
    assert best(Requirements(9856), SLICE) == "a100-1g"
    assert best(Requirements(9857), SLICE) == ""
    assert best(Requirements(9856, or_more=True), SLICE) == ""


def test_a_class_that_does_not_say_its_memory_promises_nothing() -> None:
    silent = replace(A100, axes=replace(WHOLE, memory_mib=None))
    assert best(Requirements(GB10), silent, LARGE_SLICE) == "a100-3g"
    alone = recommend(Requirements(GB10), [silent])
    assert (alone.best, alone.end) == (None, CHANGE)
    assert alone.end_text.startswith("None of the classes that would fit reports its memory.")
    assert best(Requirements(), silent) == "a100"


def test_memory_that_is_used_together_has_to_do_for_all() -> None:
    """Four runs that take turns share one memory: 4 × 30,000 MiB are more than 81,920."""
    found = recommend(Requirements(30000, own_part=False), [TURNS, A100])
    assert found.best
    assert found.best.slug == "a100"
    assert "the total would be 117.2 GiB." in why(found, "a100-turns")
    assert best(Requirements(20480, own_part=False), TURNS, A100) == "a100-turns"
    assert best(Requirements(20481, own_part=False), TURNS, A100) == "a100"


# ---- sharing --------------------------------------------------------------------------------------------------------


def test_who_takes_turns_is_never_told_a_part_of_a_card() -> None:
    found = recommend(Requirements(GB10, own_part=False), ALL)
    assert found.trade_off.startswith("not a fraction of a GPU. Up to 3 other pods share it by time-slicing;")
    assert not any(word in " ".join((*found.reasons, found.trade_off)) for word in ("1/4", "quarter", "25 %", "0.25"))


def test_an_unknown_peak_is_kept_from_unfenced_memory_and_told_why() -> None:
    found = recommend(Requirements(own_part=False), [TURNS, SLICE])
    assert (found.best and found.best.slug, found.end) == ("a100-1g", KEEP_EXCLUSIVE)
    assert found.end_text == (
        "Shared classes do not fit. A100 in turns: Its memory is not isolated and your peak is unknown: up to 4 "
        "processes use the same memory, and a process that takes too much terminates the others."
    )
    assert recommend(Requirements(GB10, own_part=False), ALL).end == ""
    assert recommend(Requirements(GB10, own_part=False), [replace(TURNS, life_cycle="retiring"), SLICE]).end == ""
    only_shared = recommend(Requirements(own_part=False), [TURNS])
    assert (only_shared.best, only_shared.end) == (None, CHANGE)
    assert only_shared.end_text.endswith("Ask an operator for a class that is not shared.")


def test_mps_is_for_small_steady_processes_only() -> None:
    assert best(Requirements(4096, own_part=False), MPS) == ""
    assert best(Requirements(4096, own_part=False, small_processes=True), MPS) == "a100-mps"
    assert best(Requirements(4096, own_part=False, small_processes=True, vendor="amd"), MI300X) == ""


def test_the_runner_up_may_have_neighbours_where_nothing_else_is_left() -> None:
    found = recommend(Requirements(GB10), [SLICE, TURNS])
    assert found.runner_up
    assert (found.runner_up.slug, found.runner_up.why) == (
        "a100-turns",
        "Choose it if you accept up to 3 other pods and pauses.",
    )


# ---- several GPUs ----------------------------------------------------------------------------------------------------


def test_slices_do_not_work_as_one() -> None:
    found = recommend(Requirements(4096, work=BATCH, cards=2, sensitive=INTERCONNECT), [SLICE, LARGE_SLICE])
    assert (found.best, found.end) == (None, CHANGE)
    assert "There is no traffic between slices (NCCL, peer to peer)" in found.end_text
    assert found.end_text.endswith("or ask an operator for whole GPUs.")


def test_pcie_is_too_slow_for_who_depends_on_the_interconnect() -> None:
    slow = replace(A100, slug="pcie", name="A100 PCIe", interconnect="pcie", price=Decimal(1))
    talk = Requirements(GB10, work=BATCH, cards=2, sensitive=INTERCONNECT)
    assert best(talk, slow, H100) == "h100"
    assert best(replace(talk, sensitive=""), slow, H100) == "pcie"
    unknown = recommend(talk, [replace(A100, interconnect="unknown")])
    assert unknown.trade_off.endswith("The interconnect of its GPUs is not known.")


def test_more_than_a_node_has_is_several_workers() -> None:
    """16 GPUs are 2 workers of 8, which a job starts together."""
    many = replace(A100, allocatable=24, free=20, free_by_node=(8, 8, 4), granted=16, left=16)
    needs = Requirements(GB80, work=BATCH, cards=16, several_nodes=True)
    found = recommend(needs, [many])
    assert found.best
    assert (found.best.units, found.best.workers, found.best.at_once) == (8, 2, True)
    assert found.best.start == "Starts now: 20 free, room for 2 workers of 8, 16 left in your team's quota."
    assert found.reasons[2].startswith("16 GPUs as 2 workers of 8 GPUs, each on one node: a job starts them together,")
    odd = recommend(replace(needs, cards=12), [many])
    assert odd.best
    assert (odd.best.units, odd.best.workers) == (6, 2)


@pytest.mark.parametrize(
    ("more", "start"),
    [
        ({"free_by_node": (8, 4, 4)}, "Queued until all 2 workers of 8 fit on the nodes: 1 of them fit now."),
        (
            {"free_by_node": (8, 4, 4), "has_more_nodes": True},
            "16 free; whether 2 nodes have 8 free each is shown at launch.",
        ),
        ({"free_by_node": (8, 8), "left": 8}, "Queued until quota is free: 8 left of your team's 16, 16 requested."),
    ],
)
def test_workers_start_when_all_of_them_fit(more: dict[str, Any], start: str) -> None:
    usual: dict[str, Any] = {"allocatable": 24, "free": 16, "most_on_one_node": 8, "granted": 16, "left": 16}
    found = recommend(
        Requirements(GB80, work=BATCH, cards=16, several_nodes=True), [replace(A100, **{**usual, **more})]
    )
    assert found.best
    assert (found.best.at_once, found.best.start) == (False, start)


def test_one_node_has_to_hold_all_cards_unless_several_are_allowed() -> None:
    few = recommend(Requirements(GB80, work=BATCH, cards=16), [replace(A100, allocatable=24)])
    assert few.end_text == (
        "A100 80GB: At most 8 GPUs on one node; 16 requested. "
        "Request at most 8 GPUs on one node, or let the job use several nodes: 2 workers of 8 GPUs."
    )
    all_of = recommend(Requirements(GB80, work=BATCH, cards=32, several_nodes=True), [replace(A100, allocatable=24)])
    assert all_of.end_text == (
        "A100 80GB: Its nodes have 24 GPUs in total; 32 requested. "
        "Request at most 24 GPUs, or split the work into independent jobs."
    )


# ---- order -----------------------------------------------------------------------------------------------------------


def test_price_decides_between_classes_that_fit_not_a_little_memory() -> None:
    """361 MiB less are no reason for a GPU that costs more than twice as much."""
    dear = replace(H100, price=Decimal(6), granted=4, left=4)
    cheap = replace(A100, price=Decimal("2.5"))
    found = recommend(Requirements(60 * 1024, work=BATCH), [dear, cheap])
    assert found.best
    assert found.best.slug == "a100"
    assert why(found, "h100") == "It fits, but it costs more: 6 per GPU and hour, not 2.5."
    assert best(Requirements(60 * 1024), dear, replace(cheap, price=Decimal(6))) == "h100", "at one price the smaller"


def test_prices_decide_only_where_all_classes_have_one() -> None:
    """A whole GPU without a price is not better than a slice that has one."""
    unpriced = replace(A100, price=Decimal(0))
    found = recommend(Requirements(GB10), [unpriced, SLICE])
    assert found.best
    assert found.best.slug == "a100-1g"
    assert why(found, "a100") == "It fits, but it is larger: 80 GiB of GPU memory instead of 9.6 GiB."
    assert not any("costs the least" in reason for reason in found.reasons)


def test_an_unknown_peak_gets_the_smallest_class_even_if_the_team_holds_whole_gpus_only() -> None:
    unheld = replace(SLICE, granted=0, left=0)
    for work in (INTERACTIVE, BATCH, SERVING):
        found = recommend(Requirements(work=work), [A100, unheld, H100])
        assert found.best
        assert (found.best.slug, found.best.start[:20]) == ("a100-1g", "Request quota first:")
        assert why(found, "a100") == "It fits, but it is larger: 80 GiB of GPU memory instead of 9.6 GiB."
    assert best(Requirements(GB10), A100, unheld) == "a100", "of a known peak what the team may use comes first"


def test_an_early_start_can_matter_more_than_the_price() -> None:
    cheap = replace(A100, slug="cheap", price=Decimal(1), free=0, most_on_one_node=0)
    assert best(Requirements(GB80), cheap, A100) == "cheap"
    found = recommend(Requirements(GB80, soon=True), [cheap, A100])
    assert found.best
    assert found.best.slug == "a100"
    assert why(found, "cheap").startswith("It fits, but it does not start now. Queued until GPUs are free")


def test_a_run_that_cannot_resume_is_kept_from_borrowed_units() -> None:
    lent = replace(A100, slug="lent", price=Decimal(1), granted=0, left=0, borrowable=4)
    assert best(Requirements(GB80, work=BATCH), lent, A100) == "lent"
    found = recommend(Requirements(GB80, work=BATCH, resumes=False), [lent, A100])
    assert found.best
    assert found.best.slug == "a100"
    assert "cannot resume when they are reclaimed" in why(found, "lent")
    resumes = recommend(Requirements(GB80, work=BATCH, resumes=True), [lent, A100])
    assert resumes.best
    assert resumes.best.slug == "lent"
    assert resumes.trade_off.endswith("it then resumes from its last checkpoint.")


def test_a_long_run_needs_a_class_that_lets_it_end() -> None:
    short = replace(A100, slug="short", price=Decimal(1), hours_limit=8)
    assert best(Requirements(GB80, work=BATCH, long=True, resumes=False), short, A100) == "a100"
    resumes = recommend(Requirements(GB80, work=BATCH, long=True, resumes=True), [short, A100])
    assert resumes.best
    assert resumes.best.slug == "short"
    assert resumes.trade_off.endswith("Runs are stopped after 8 h: continue from a checkpoint in another run.")
    alone = recommend(Requirements(GB80, work=BATCH, long=True, resumes=False), [short])
    assert alone.end_text.endswith(
        "Let it resume from checkpoints, or ask an operator for a class without a time limit."
    )


def test_nobody_else_on_the_gpu_leaves_slices_and_shares_out() -> None:
    found = recommend(Requirements(GB10, alone=True), ALL)
    assert found.best
    assert found.best.slug == "a100"
    assert why(found, "a100-1g") == "Other pods use the rest of the same GPU, isolated from this part."
    assert "shared with up to 3 other pods" in why(found, "a100-turns")


def test_video_needs_engines_that_the_unit_has() -> None:
    slices = [replace(SLICE, decodes=False, encodes=False), replace(LARGE_SLICE, decodes=True, encodes=False)]
    t4 = replace(A100, slug="t4", price=Decimal(3), decodes=True, encodes=True)
    assert best(Requirements(4096, video=DECODE), *slices, t4) == "a100-3g"
    found = recommend(Requirements(4096, video=ENCODE), [*slices, t4, A100])
    assert found.best
    assert found.best.slug == "t4"
    assert why(found, "a100-1g") == "This slice has no video encoder (NVENC)."
    assert why(found, "a100") == "It is not known whether it has a video encoder (NVENC)."


@pytest.mark.parametrize(
    ("product", "partition", "engines"),
    [
        ("NVIDIA-A100-SXM4-80GB", "none", (True, False)),
        ("NVIDIA-A100-SXM4-80GB", "1g.10gb", (False, False)),
        ("NVIDIA-A100-SXM4-80GB", "1g.10gb.me", (True, False)),
        ("NVIDIA-A100-SXM4-80GB", "2g.20gb", (True, False)),
        ("NVIDIA-H100-80GB-HBM3", "1g.10gb", (True, False)),
        ("NVIDIA-A30", "1g.6gb", (False, False)),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "1g.24gb", (True, True)),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "1g.24gb-me", (False, False)),
        ("Tesla-T4", "none", (True, True)),
        ("NVIDIA-L40S", "none", (True, True)),
        ("NVIDIA-B400", "none", (None, None)),
        ("AMD_Instinct_MI300X_OAM", "none", (None, None)),
    ],
)
def test_which_unit_has_video_engines(product: str, partition: str, engines: tuple[bool | None, bool | None]) -> None:
    assert video_engines(product, partition) == engines


def test_a_pilot_is_said_to_be_one() -> None:
    found = recommend(Requirements(GB80, fp8=True), [H100])
    assert found.trade_off.endswith("This class is a pilot.")


# ---- no class fits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("needs", "options", "text"),
    [
        (
            Requirements(200 * 1024),
            ALL,
            "No class has 200 GiB on one GPU; the largest is MI300X with 192 GiB. "
            "Split the model over 2 GPUs, or reduce memory use: smaller batch, lower precision, offloading.",
        ),
        (
            Requirements(16 * 81920),
            [A100],
            "Even if the model is split, it needs 16 GPUs, more than a workload may have: reduce memory use.",
        ),
        (
            Requirements(GB10, fp8=True),
            [A100],
            "A100 80GB: It does not support FP8. Drop this requirement, or ask an operator",
        ),
        (Requirements(GB10, vendor="intel"), [A100], "A100 80GB: It is not made by Intel."),
        (Requirements(GB10, dra=True), [A100], "It is requested by count, not by device attributes (DRA)."),
        (Requirements(GB10), [replace(A100, kinds="job")], "A100 80GB: It accepts jobs only. Run it as a job."),
        (
            Requirements(GB10),
            [replace(A100, life_cycle="retiring")],
            "A100 80GB: It is retiring: new workloads do not start on it.",
        ),
        (
            Requirements(GB10),
            [replace(A100, largest_node=0)],
            "A100 80GB: No node provides it at the moment. Ask an operator",
        ),
        (
            Requirements(GB10),
            [TURNS],
            "It is shared with up to 3 other pods, which can slow your workload down or terminate it. Accept sharing",
        ),
        (Requirements(GB80), [SLICE], "the largest is A100 1g.10gb with 9.6 GiB. Reduce memory use"),
        (Requirements(GB10), [CPU], "No class with a GPU is active yet. Contact an operator."),
        (Requirements(GB10), [], "No class with a GPU is active yet. Contact an operator."),
    ],
)
def test_nothing_fits(needs: Requirements, options: list[ClassOption], text: str) -> None:
    found = recommend(needs, options)
    assert (found.best, found.runner_up, found.starts_now, found.end) == (None, None, None, CHANGE)
    assert text in found.end_text
    assert {one.slug for one in found.others} == {one.slug for one in options}


def test_whether_a_product_computes_in_fp8_may_be_unknown() -> None:
    assert [has_fp8(name) for name in ("NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S", "AMD_Instinct_MI300X_OAM")] == [True] * 3
    assert [has_fp8(name) for name in ("NVIDIA-A100-SXM4-80GB", "Tesla-V100-SXM2-32GB", "Tesla-T4")] == [False] * 3
    assert [has_fp8(name) for name in ("", "GPU-9000", "NVIDIA GPU")] == [None] * 3
    assert why(recommend(Requirements(fp8=True), [replace(A100, fp8=None)]), "a100").startswith(
        "It is not known whether"
    )


# ---- quota and available units ---------------------------------------------------------------------------------------


def test_a_held_class_comes_last_and_says_so() -> None:
    held = replace(SLICE, held="Held for a driver update.")
    assert best(Requirements(GB10), held, A100) == "a100"
    alone = recommend(Requirements(GB10), [held])
    assert alone.best
    assert (alone.best.at_once, alone.best.start) == (False, "Held for a driver update.")
    assert alone.starts_now is None


def test_what_the_team_may_use_comes_first_and_the_cheaper_one_second() -> None:
    larger = replace(A100, slug="larger", axes=replace(WHOLE, memory_mib=98304))
    found = recommend(Requirements(GB10), [replace(SLICE, granted=0, left=0), A100, larger])
    assert found.best
    assert found.runner_up
    assert (found.best.slug, found.runner_up.slug) == ("a100", "a100-1g")
    assert found.runner_up.why == "It is cheaper and sufficient, but your team's quota does not cover it yet."
    assert found.trade_off == "70.7 GiB of each GPU stays unused with your peak, and no other pod can use it."


@pytest.mark.parametrize(
    ("option", "at_once", "start"),
    [
        (SLICE, True, "Starts now: 12 free, 3 left in your team's quota."),
        (replace(SLICE, left=0), False, "Queued until quota is free: 0 left of your team's 6, 1 requested."),
        (replace(SLICE, free=0, most_on_one_node=0), False, "Queued until slices are free: 0 free, 1 requested."),
        (replace(SLICE, free=None, most_on_one_node=None), False, "Start time unknown: the cluster has not been"),
        (
            replace(SLICE, granted=0, left=0),
            False,
            "Request quota first: your team has no quota, and borrowing is off.",
        ),
        (
            replace(SLICE, granted=0, left=0, borrowable=2),
            False,
            "0 left in your team's quota; up to 2 can be borrowed",
        ),
        (replace(SLICE, granted=None, left=0), False, "You are not in a team; launching needs a team."),
        (replace(SLICE, closed="The queue is stopped."), False, "The queue is stopped. New workloads wait."),
    ],
)
def test_when_it_would_start(option: ClassOption, at_once: bool, start: str) -> None:
    found = recommend(Requirements(GB10), [option])
    assert found.best
    assert (found.best.at_once, found.best.start[: len(start)]) == (at_once, start)


def test_free_on_several_nodes_is_not_free_on_one() -> None:
    found = recommend(Requirements(GB80, work=BATCH, cards=2), [replace(A100, most_on_one_node=1)])
    assert found.best
    assert found.best.start == "Queued until GPUs are free: 3 free, but at most 1 on one node; 2 requested."


def test_what_starts_now_is_named_where_the_best_one_waits() -> None:
    found = recommend(Requirements(GB10), [replace(SLICE, left=0), A100])
    assert found.best
    assert found.starts_now
    assert (found.best.slug, found.starts_now.slug) == ("a100-1g", "a100")
    assert found.starts_now.start == "Starts now: 3 free, 2 left in your team's quota."


def test_cuda_is_not_sent_to_other_vendors_unasked() -> None:
    found = recommend(Requirements(81920, or_more=True), ALL)
    assert found.trade_off.endswith("Not an NVIDIA GPU: CUDA programs and images do not run on it.")
    axes = replace(MI300X.axes, partition="cpx_nps1", memory_mib=24576)
    part = replace(MI300X, slug="amd-part", granted=4, left=4, axes=axes)
    assert best(Requirements(GB10), part, LARGE_SLICE) == "a100-3g"
    assert best(Requirements(GB10, vendor="amd"), part, LARGE_SLICE) == "amd-part"


def test_what_was_measured_between_gpus_is_stated_for_several_and_nothing_else() -> None:
    said = "8 GPUs, all NV18 on 3 nodes, last measured 31 Jan 2026."
    several = Requirements(GB10, work=BATCH, cards=2)
    unknown = replace(A100, interconnect="unknown")
    measured = recommend(several, [replace(unknown, measured=(said,))])
    assert f"Measured: {said}" in measured.reasons
    assert any("links as measured" in one for one in measured.reasons)
    assert "The interconnect of its GPUs is not known." not in measured.trade_off
    without = recommend(several, [unknown])
    assert not any("Measured" in one or "as measured" in one for one in without.reasons)
    assert "The interconnect of its GPUs is not known." in without.trade_off
    alone = recommend(replace(several, cards=1), [replace(unknown, measured=(said,))])
    assert not any("Measured" in one for one in alone.reasons)
