"""Which device a pod has, and what it does there."""

from __future__ import annotations

import json
from statistics import mean

import pytest

from devcluster.monitoring import profiles
from devcluster.monitoring.assignment import Assignments
from devcluster.monitoring.profiles import activity, measured_activity, memory_held
from tests.devcluster.monitoring.simulated import AT, gpus_of, notebook, pod

UID, DEVICE = "uid-1", "GPU-1/0"


def test_a_pod_gets_the_lowest_free_device_and_keeps_it() -> None:
    node, held = gpus_of("a100-1"), Assignments()
    first, second, third = (pod(name, created=f"2027-01-15T07:00:0{at}Z") for at, name in enumerate("abc"))

    def devices(*pods: dict[str, object]) -> dict[str, int]:
        found = held.update(node, pods)
        return {one.pod: card for (card, _), those in found.items() for one in those}

    assert devices(second, first) == {"a": 0, "b": 1}, "in the order of their creation"
    assert devices(second) == {"b": 1}
    assert devices(second, third) == {"b": 1, "c": 0}
    ended = {**second, "status": {"phase": "Succeeded"}}
    assert devices(ended, third) == {"c": 0}


def test_a_pod_keeps_its_device_over_a_restart() -> None:
    node, first, second = gpus_of("a100-1"), pod("a"), pod("b", created="2027-01-15T07:00:01Z")
    before = Assignments()
    before.update(node, [first, second])
    kept = json.loads(json.dumps(before.held))
    assert [*Assignments(kept).update(node, [second])] == [(1, 0)]
    assert [*Assignments().update(node, [second])] == [(0, 0)]


def test_a_pod_that_asks_for_several_has_several_and_none_is_given_twice() -> None:
    found = Assignments().update(gpus_of("a100-1"), [pod("two", units=2), pod("three", units=3), pod("none", "cpu")])
    assert sorted((place, [one.pod for one in those]) for place, those in found.items()) == [
        ((0, 0), ["three"]),
        ((1, 0), ["three"]),
        ((2, 0), ["three"]),
        ((3, 0), ["two"]),
    ]


def test_what_is_held_is_assigned_again_when_the_hardware_is_another() -> None:
    held = Assignments()
    one = pod("z", node="a100-sliced")
    many = [pod(f"p{number}", node="a100-sliced") for number in range(12)]
    assert len(held.update(gpus_of("a100-sliced"), [*many, one])) == 4
    assert held.held["uid-z"] == [("job", "nvidia.com/gpu", 12)]
    assert sorted(held.update(gpus_of("a100-1"), [one])) == [(0, 0)]


def test_a_profile_comes_from_the_pod_and_a_notebook_is_measured() -> None:
    def profile_of(one: dict[str, object]) -> str:
        [(occupant,)] = Assignments().update(gpus_of("a100-1"), [one]).values()
        return occupant.profile

    assert profile_of(pod("job")) == "steady"
    assert profile_of(pod("job", env=[{"name": "GPU_PROFILE", "value": "bursts"}])) == "bursts"
    env = [{"name": "GPU_PROFILE", "value": "bursts"}]
    assert profile_of(pod("job", env=env, annotations={"devcluster/gpu-profile": "idle"})) == "idle"
    assert profile_of(pod("job", annotations={"devcluster/gpu-profile": "no such"})) == "steady"
    assert profile_of(notebook("lab")) == ""


def course(profile: str, hours: int = 2) -> list[float]:
    times = range(0, hours * 3600, profiles.STEP_S)
    return [activity(profile, uid=UID, device=DEVICE, at=AT + at, started_at=AT) for at in times]


@pytest.mark.parametrize(
    ("profile", "least", "most", "mean_of_all"),
    [
        ("steady", 0.85, 0.95, 0.9),
        ("idle", 0.0, 0.02, 0.01),
        ("memory", 0.0, 0.02, 0.01),
        ("bursts", 0.0, 0.95, 0.3 * 0.9 + 0.7 * 0.01),
        ("finished", 0.0, 0.95, 0.25 * 0.9 + 0.75 * 0.01),
    ],
)
def test_a_profile_has_its_course(profile: str, least: float, most: float, mean_of_all: float) -> None:
    seen = course(profile)
    assert least <= min(seen) < max(seen) <= most
    assert mean(seen) == pytest.approx(mean_of_all, abs=0.02)
    assert len(set(seen)) == len(seen)


def test_one_that_finished_does_nothing_afterwards() -> None:
    seen = course("finished")
    half_an_hour = 1800 // profiles.STEP_S
    assert min(seen[:half_an_hour]) >= 0.85
    assert max(seen[half_an_hour:]) <= 0.02


def test_memory_is_held_also_by_who_does_nothing() -> None:
    held = {profile: memory_held(profile, uid=UID) for profile in (*profiles.PROFILES, "")}
    assert max(held, key=lambda one: held[one]) == "memory"
    assert held["memory"] > 0.85
    assert min(held.values()) > 0.05


def test_a_notebook_that_computes_is_busy_by_its_cores() -> None:
    def seen(cores: float) -> float:
        return measured_activity(cores, uid=UID, device=DEVICE, at=AT)

    assert seen(0.0) <= 0.02
    assert seen(0.05) <= 0.02
    assert 0.4 < seen(0.5) < 0.5
    assert 0.85 < seen(1.0) == seen(4.0) < 1
