"""Which next steps help and which are never offered: each case of the table, and rules that hold for all cases."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from tests.workloads.cases.advice import A100, CASES, FULL, H100, NOTHING, QUOTA, SLICE, Case
from tests.workloads.cases.cluster_objects import NOW, WISH
from tests.workloads.cases.problem_status import told as told_of
from tests.workloads.cases.problems import PROBLEMS
from tests.workloads.status.explain.messages import MESSAGES, OPERATORS, Message
from workloads.advice.advice import Advice, advice
from workloads.advice.facts import AdviceFacts
from workloads.advice.steps import PageLink
from workloads.forecast.availability import GOOD, AvailabilityFigures, availability_sentence
from workloads.status.phase import status_of
from workloads.status.types import Phase, Status

BY_NAME = {case.name: case for case in CASES}


def given(case: Case) -> Advice:
    found = advice(case.told, case.facts)
    assert found is not None
    return found


def first_of(case: Case) -> tuple[str, str, str]:
    found = given(case)
    assert found.first is not None
    return found.verdict, found.first.verb, found.first.way.href("team-a") if found.first.way else ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_and_the_first_step(case: Case) -> None:
    assert first_of(case) == (case.verdict, case.verb, case.to)
    step = given(case).steps[0]
    assert case.why in step.why


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_its_neighbour_is_answered_otherwise(case: Case) -> None:
    neighbour = BY_NAME[case.neighbour]
    assert (first_of(case), given(case).steps[0].why) != (first_of(neighbour), given(neighbour).steps[0].why)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_can_never_start_is_never_told_to_wait_and_every_step_is_whole(case: Case) -> None:
    found = given(case)
    verbs = [step.verb for step in found.steps]
    assert not (found.verdict in ("never", "over") and "wait" in verbs)
    assert len({step.label for step in found.steps}) == len(verbs)
    for step in found.steps:
        assert step.label[0].isupper()
        assert step.why.endswith((".", "!"))
        assert "  " not in step.why


@pytest.mark.parametrize("unit", ["share", "slice", "GPU"])
def test_a_smaller_class_is_named(unit: str) -> None:
    smaller = replace(SLICE, figures=replace(SLICE.figures, unit=unit))
    found = advice(QUOTA, replace(FULL, options=(smaller,)))
    assert found is not None
    assert (found.steps[0].verb, found.steps[0].label) == ("smaller_slice", "Switch to A100 3g slice")
    assert f"{unit}s" in found.steps[0].why


def labels(facts: AdviceFacts) -> list[str]:
    found = advice(QUOTA, facts)
    assert found is not None
    return [step.label for step in found.steps if step.verb in ("smaller_slice", "other_class")]


def test_what_it_asked_for_decides_the_order() -> None:
    """Enough GPU memory comes first, then isolation, then the number of units; one of two is a smaller class."""
    of_80 = replace(FULL, gpu_memory_mib=80 * 1024)
    large = replace(H100, gpu_memory_mib=80 * 1024)
    slices = replace(SLICE, gpu_memory_mib=40 * 1024)
    shares = replace(slices, slug="a100-x4", name="A100 share", is_less_isolated=True)
    small = replace(H100, slug="l4", name="L4", gpu_memory_mib=24 * 1024)
    assert labels(replace(of_80, options=(slices, large))) == ["Switch to H100", "Switch to A100 3g slice"]
    assert labels(replace(of_80, options=(shares, slices))) == ["Switch to A100 3g slice", "Switch to A100 share"]
    assert labels(replace(of_80, options=(small, large, shares))) == ["Switch to H100", "Switch to A100 share"]
    fewer = replace(large, slug="h200", name="H200", takes_units=1)
    assert labels(replace(of_80, options=(fewer, small))) == ["Switch to L4"]
    one = replace(small, takes_units=1)
    assert labels(replace(of_80, options=(one, fewer))) == ["Switch to 1 GPU of H200", "Switch to 1 GPU of L4"]


def test_one_slice_is_offered_where_it_takes_only_one() -> None:
    one = replace(SLICE, takes_units=1, gpu_memory_mib=40 * 1024)
    found = advice(QUOTA, replace(FULL, options=(one,), gpu_memory_mib=80 * 1024))
    assert found is not None
    step = found.steps[-1]
    assert step.label == "Switch to 1 slice of A100 3g slice", "the last resort"
    assert step.way is not None
    assert step.way.query == {"class": "a100-3g", "units": "1"}
    memory = "It has 40 GiB of GPU memory instead of 160 GiB."
    assert step.why == f"Uses 1 of 4 slices; 4 free now on one node; starts now. {memory}"


def test_names_are_names() -> None:
    assert len(BY_NAME) == len(CASES) > 45


@pytest.mark.parametrize("told", NOTHING, ids=lambda told: told.reason)
def test_what_is_on_its_way_needs_no_advice(told: Status) -> None:
    assert advice(told, FULL) is None


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_every_problem_that_has_a_text_of_the_cluster_has_a_step(problem: object) -> None:
    told = told_of(problem)  # type: ignore[arg-type]
    if told.explained is None or told.reason in ("pulling", "cloning"):
        return
    found = advice(told, FULL)
    assert found is not None
    assert found.steps, told.reason
    assert (found.verdict == "over") == (told.phase is Phase.FAILED)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: f"{one.reason}: {one.text[-60:]}")
def test_every_message_of_the_cluster_has_a_step_for_who_can_act(message: Message) -> None:
    told = status_of(replace(WISH, image="registry.example.org/minimal:1"), message.seen, now=NOW)
    found = advice(told, FULL)
    assert found is not None, told.reason
    verbs = {step.verb for step in found.steps}
    assert verbs
    if message.who == OPERATORS and told.phase is not Phase.FAILED:
        assert "tell_operators" in verbs, told.reason


UNTRUSTED = next(one for one in MESSAGES if one.reason == "registry_untrusted")
HOW_IT_ENDED = {one.reason: told_of(one) for one in PROBLEMS if one.phase == "failed"}


def test_the_step_that_helps_comes_first() -> None:
    """Only operators can trust a registry; a log says why a clone failed, but not how to use less GPU memory; a
    mistyped branch has a field of its own.
    """
    untrusted = status_of(WISH, UNTRUSTED.seen, now=NOW)
    for told, verbs in {
        "untrusted": ["tell_operators", "change"],
        "clone_failed": ["read_log", "change"],
        "reference_not_found": ["change", "read_log"],
        "repository_unreachable": ["change", "read_log", "tell_operators"],
        "out_of_gpu_memory": ["change", "read_log"],
    }.items():
        found = advice(HOW_IT_ENDED.get(told, untrusted), FULL)
        assert found is not None
        assert [step.verb for step in found.steps] == verbs, told
    branch = advice(HOW_IT_ENDED["reference_not_found"], FULL)
    assert branch is not None
    assert branch.steps[0].label == "Change the branch or tag"
    assert branch.steps[0].way == PageLink("workload-change", "one", place="id_reference")


@pytest.mark.parametrize(
    ("shared", "each", "place"), [(4, 2, "id_shared_memory_gib"), (16, 2, "id_units"), (64, 8, "")]
)
def test_no_more_shared_memory_is_suggested_than_there_is_memory(shared: int, each: int, place: str) -> None:
    own = replace(A100, memory_gib=8, most_units=8)
    found = advice(HOW_IT_ENDED["bus_error"], replace(FULL, own=own, each=each, shared_memory_gib=shared))
    assert found is not None
    assert found.steps[0].verb == ("change" if place else "read_log")
    assert found.steps[0].way is not None
    assert found.steps[0].way.place == place


@pytest.mark.parametrize(("reason", "limit"), [("limit_range", 1), ("below_limit_range", 4)])
def test_units_within_the_limits_of_the_namespace(reason: str, limit: int) -> None:
    """No other class is tried: the limit is for the resource, and for containers of all classes with it."""
    over = next(told_of(one) for one in PROBLEMS if one.name == "GPUs over the limits")
    told = replace(over, reason=reason, facts={"resource": "nvidia.com/gpu", "limit": limit})
    found = advice(told, FULL)
    assert found is not None
    assert found.steps[0].label == f"Request {limit} GPU{'s' if limit > 1 else ''} instead of 2"
    assert found.steps[0].way == PageLink("workload-change", "one", {"class": "a100", "units": str(limit)}, "id_units")
    beyond = advice(replace(told, facts={"resource": "nvidia.com/gpu", "limit": 9}), FULL)
    assert beyond is not None
    assert [step.verb for step in beyond.steps] == ["tell_operators"]


def test_what_restarts_automatically_is_not_said_to_need_an_action() -> None:
    """The node may have recovered by then, and operators are asked otherwise; a step that helps comes before."""
    down = next(one for one in MESSAGES if one.reason == "device_plugin_down")
    files = next(told_of(one) for one in PROBLEMS if one.reason == "too_many_files")
    for told, verbs in ((status_of(WISH, down.seen, now=NOW), ["wait", "tell_operators"]), (files, ["change", "wait"])):
        found = advice(told, FULL)
        assert found is not None
        assert (found.verdict, [step.verb for step in found.steps]) == ("not_yet", verbs), told.reason
    assert found is not None
    changed, wait = found.steps
    assert changed.way == PageLink("workload-change", "one", place="id_shared_memory_gib")
    assert wait.why == "It restarts automatically. If it ends in the same way again, waiting does not help."
    elsewhere = advice(replace(files, facts={"resource": "home"}), FULL)
    assert elsewhere is not None
    assert elsewhere.steps[0].way == PageLink("workload-change", "one", place="id_volume")


def test_who_may_not_change_it_is_offered_no_form() -> None:
    facts = replace(FULL, own=replace(A100, figures=replace(A100.figures, used=3, on_one_node=3)), may_change=False)
    found = advice(QUOTA, facts)
    assert found is not None
    assert [step.verb for step in found.steps] == ["wait", "request_quota"]


def test_quota_is_asked_for_only_where_the_nodes_have_so_much() -> None:
    assert any(step.verb == "request_quota" for step in advice(QUOTA, FULL).steps)  # type: ignore[union-attr]
    for allocatable in (None, 5):
        found = advice(QUOTA, replace(FULL, own=replace(A100, allocatable=allocatable)))
        assert found is not None
        assert all(step.verb != "request_quota" for step in found.steps), allocatable


@pytest.mark.parametrize("waiting", [(), (1,), (4,), (1, 2)])
@pytest.mark.parametrize("held", ["", "A100 is held."])
def test_what_fits_now_is_what_the_outlook_says_starts_at_once(waiting: tuple[int, ...], held: str) -> None:
    for granted, used, free, borrowing in product(range(6), range(6), (None, 0, 1, 2, 5), (0, 2)):
        figures = AvailabilityFigures("GPU", granted, used, borrowing, free, held=held, waiting=waiting)
        starts = [units for units in range(1, 8) if availability_sentence(figures, None, units)[1] == GOOD]
        assert figures.units_now == max(starts, default=0), figures
        assert starts == list(range(1, len(starts) + 1))
