"""Which launches can never start, and who may launch. Tables: facts in, code and numbers out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accounts.core.actor import Actor
from accounts.models import Role, Scope, User
from catalog.classes.capacity.device_memory import MemorySize
from tests.workloads.launch.facts import A100, ALICE, TEAM
from workloads.core import policy as core_policy
from workloads.core.policy import ClassFacts, RunFacts, TeamFacts
from workloads.gateway import policy as gateway_policy
from workloads.launch import policy
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec

OLGA = Actor(user=User(pk=9, name="Olga", roles=[Role.OPERATOR]), via="page")
READER = replace(ALICE, scopes=frozenset({Scope.READ}))
WANTED = LaunchSpec(name="one", kind="notebook", gpu_class="a100", units=1, image="minimal")
# A node has three devices of 20.5 GiB or more, of which two have 79.6.
SIZES = MemorySize(20 * 2**30 + 2**29, 3), MemorySize(81559 * 2**20, 2)
RUNS = RunFacts(is_over=False, is_stopping=False, is_ready=True, is_deleting=False, created_by=1)


@pytest.mark.parametrize(
    ("units", "facts", "code", "words"),
    [
        (4, A100, None, ""),
        (5, A100, "exceeds_grant", "5 of A100 requested; your team can use at most 4 (4 granted, no borrowing)"),
        (5, replace(A100, borrowing_limit=2, node_units=8), None, ""),
        (7, replace(A100, borrowing_limit=2, node_units=8), "exceeds_grant", "(4 granted, 2 by borrowing)"),
        (4, replace(A100, node_units=2), "exceeds_node", "no node has more than 2"),
        (4, replace(A100, node_units=None), None, ""),
        (9, replace(A100, granted=20), "too_many_units", "the limit is 8 per workload"),
        (1, replace(A100, granted=0), "not_granted", "has no quota for A100 and cannot borrow it"),
        (1, replace(A100, granted=0, borrowing_limit=1), None, ""),
        (1, replace(A100, life_cycle="retired"), "class_not_active", "A100 is retired"),
        (1, replace(A100, life_cycle="retiring"), "class_not_active", "A100 is retiring"),
        (1, replace(A100, life_cycle="retiring", successor="H100"), "class_not_active", "Choose H100."),
        (1, replace(A100, kinds="notebook"), None, ""),
        (1, replace(A100, kinds="job"), "kind_not_offered", "for jobs only. Choose another class for a notebook."),
        (1, replace(A100, is_usable=False), "class_not_yours", "not available to your team"),
        (1, replace(A100, terms_version=2), "terms_not_accepted", "not accepted the terms of A100, version 2"),
        (1, replace(A100, terms_version=2, terms_accepted=True), None, ""),
        (0, A100, "bad_units", "Enter at least 1 unit, not 0."),
    ],
)
def test_only_what_can_never_start_is_refused(units: int, facts: ClassFacts, code: str | None, words: str) -> None:
    refusal = policy.may_launch(ALICE, TEAM, facts, replace(WANTED, units=units))
    assert (refusal.code if refusal else None) == code
    assert words in (refusal.message if refusal else "")


@pytest.mark.parametrize(
    ("version", "accepted", "ticked", "words"),
    [
        (0, False, 0, None),
        (0, False, 3, None),
        (2, False, 2, None),
        (2, True, 0, None),
        (2, True, 1, None),
        (2, False, 0, "send accept_terms: 2"),
        (2, False, 1, "Version 1 is not in force"),
        (2, False, 3, "Version 3 is not in force"),
    ],
)
def test_terms_are_accepted_in_the_version_in_force(
    version: int, accepted: bool, ticked: int, words: str | None
) -> None:
    refusal = policy.must_accept_terms(replace(A100, terms_version=version, terms_accepted=accepted), ticked)
    assert (refusal is None) == (words is None)
    assert refusal is None or (words or "") in refusal.message


@pytest.mark.parametrize(
    ("wanted", "code", "field"),
    [
        (replace(WANTED, name="My Lab"), "bad_name", "name"),
        (replace(WANTED, name="a" * 41), "bad_name", "name"),
        (replace(WANTED, name="-a"), "bad_name", "name"),
        (replace(WANTED, name="a--b"), "bad_name", "name"),
        (replace(WANTED, name=""), "bad_name", "name"),
        (replace(WANTED, kind="service"), "bad_kind", "kind"),
        (replace(WANTED, command=("sh",)), "no_command", "command"),
        (replace(WANTED, kind="job", command=("a\0b",)), "bad_command", "command"),
        (replace(WANTED, kind="job", command=("x",) * 65), "bad_command", "command"),
        (replace(WANTED, volume="../etc"), "bad_volume", "volume"),
        (replace(WANTED, volume="data", volume_gib=0), "bad_volume_size", "volume_gib"),
        (replace(WANTED, volume="data", volume_gib=4096), "bad_volume_size", "volume_gib"),
    ],
)
def test_what_is_typed_wrongly_is_said_beside_its_field(wanted: LaunchSpec, code: str, field: str) -> None:
    refusal = policy.may_launch(ALICE, TEAM, A100, wanted)
    assert refusal is not None
    assert (refusal.code, refusal.field) == (code, field)


@pytest.mark.parametrize(
    ("by", "team", "code"),
    [
        (ALICE, replace(TEAM, role="owner"), None),
        (ALICE, replace(TEAM, role="viewer"), "not_allowed"),
        (OLGA, replace(TEAM, role=""), "not_allowed"),
        (READER, TEAM, "missing_scope"),
        (ALICE, replace(TEAM, namespace_wanted="suspended"), "namespace_suspended"),
        (ALICE, replace(TEAM, namespace_wanted="closed"), "namespace_suspended"),
        (ALICE, replace(TEAM, workloads=core_policy.WORKLOADS_LIMIT), "too_many_workloads"),
    ],
)
def test_who_may_launch(by: Actor, team: TeamFacts, code: str | None) -> None:
    refusal = policy.may_launch(by, team, A100, WANTED)
    assert (refusal.code if refusal else None) == code


def test_a_full_team_starts_and_declares_again_what_it_has() -> None:
    full = replace(TEAM, workloads=core_policy.WORKLOADS_LIMIT)
    assert policy.may_start(ALICE, full, replace(RUNS, is_over=True)) is None
    assert policy.may_declare(ALICE, full, A100, WANTED) is None
    refusal = policy.may_launch_any(ALICE, full, has_class=True)
    assert refusal is not None
    assert refusal.code == "too_many_workloads"


@pytest.mark.parametrize(
    ("by", "role", "created_by", "code"),
    [
        (ALICE, "member", 1, None),
        (ALICE, "member", 2, "not_allowed"),
        (ALICE, "manager", 2, None),
        (ALICE, "owner", 2, None),
        (ALICE, "viewer", 1, "not_allowed"),
        (OLGA, "", 2, None),
        (READER, "owner", 1, "missing_scope"),
    ],
)
def test_who_may_stop_and_delete(by: Actor, role: str, created_by: int, code: str | None) -> None:
    team, run = replace(TEAM, role=role), replace(RUNS, created_by=created_by)
    for refusal in (core_policy.may_stop(by, team, run), core_policy.may_delete(by, team, run)):
        assert (refusal.code if refusal else None) == code


@pytest.mark.parametrize(
    ("role", "run", "kind", "code"),
    [
        ("member", RUNS, "notebook", None),
        ("viewer", RUNS, "notebook", "not_allowed"),
        ("", RUNS, "notebook", "not_allowed"),
        ("member", RUNS, "job", "not_a_notebook"),
        ("member", replace(RUNS, is_ready=False), "notebook", "not_ready"),
        ("member", replace(RUNS, is_stopping=True), "notebook", "not_running"),
        ("member", replace(RUNS, is_over=True), "notebook", "not_running"),
    ],
)
def test_who_may_open(role: str, run: RunFacts, kind: str, code: str | None) -> None:
    refusal = gateway_policy.may_open(ALICE, replace(TEAM, role=role), run, kind)
    assert (refusal.code if refusal else None) == code


@pytest.mark.parametrize(
    ("role", "created_by", "code"),
    [
        ("member", 1, None),
        ("member", 2, "private_notebook"),
        ("manager", 2, "private_notebook"),
        ("owner", 2, "private_notebook"),
        # The person who launched it and became a viewer.
        ("viewer", 1, "not_allowed"),
    ],
)
def test_a_private_notebook_opens_for_the_person_who_launched_it(role: str, created_by: int, code: str | None) -> None:
    run = replace(RUNS, is_private=True, created_by=created_by)
    refusal = gateway_policy.may_open(ALICE, replace(TEAM, role=role), run, "notebook", owner="Bob")
    assert (refusal.code if refusal else None) == code


@pytest.mark.parametrize(
    ("by", "role", "created_by", "kind", "code"),
    [
        (ALICE, "member", 1, "notebook", None),
        (ALICE, "owner", 2, "notebook", "not_allowed"),
        (ALICE, "manager", 2, "notebook", "not_allowed"),
        (ALICE, "viewer", 1, "notebook", "not_allowed"),
        (OLGA, "", 2, "notebook", "not_allowed"),
        (READER, "owner", 1, "notebook", "missing_scope"),
        (ALICE, "member", 1, "job", "not_a_notebook"),
    ],
)
def test_who_may_share(by: Actor, role: str, created_by: int, kind: str, code: str | None) -> None:
    refusal = gateway_policy.may_share(by, replace(TEAM, role=role), replace(RUNS, created_by=created_by), kind)
    assert (refusal.code if refusal else None) == code


def test_what_runs_is_not_started_twice_and_what_ended_is_not_stopped() -> None:
    running = policy.may_start(ALICE, TEAM, RUNS)
    ended = core_policy.may_stop(ALICE, TEAM, replace(RUNS, is_over=True))
    assert running is not None
    assert ended is not None
    assert (running.code, running.status, ended.code, ended.status) == ("still_running", 409, "not_running", 409)


@pytest.mark.parametrize(
    ("gib", "units", "sizes", "code"),
    [
        (None, 4, (), None),
        (40, 4, None, None),
        (20, 3, SIZES, None),
        (20, 4, SIZES, "gpu_memory_too_large"),
        (21, 2, SIZES, None),
        (21, 3, SIZES, "gpu_memory_too_large"),
        (79, 1, SIZES, None),
        (80, 1, SIZES, "gpu_memory_too_large"),
        (0, 1, SIZES, "gpu_memory_too_large"),
        (40, 1, (), "gpu_memory_unknown"),
    ],
)
def test_only_memory_that_no_device_has_is_refused(
    gib: int | None, units: int, sizes: tuple[MemorySize, ...] | None, code: str | None
) -> None:
    facts = replace(A100, memory_sizes=sizes)
    wanted = replace(WANTED, units=units, options=Options(gpu_memory_gib=gib))
    refusal = policy.may_launch(ALICE, TEAM, facts, wanted)
    assert (refusal and (refusal.code, refusal.field)) == (code and (code, "gpu_memory_gib"))
