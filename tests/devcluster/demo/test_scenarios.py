"""What a demo may begin with: names, what may stand beside one, and that its numbers are those of its hardware."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from devcluster.__main__ import _parser
from devcluster.controlplane import hardware
from devcluster.demo import check, command, environment, past, scenarios
from devcluster.demo.sample import contention, idle_gpus
from devcluster.demo.scenarios import EVERYDAY, MORNING, QUIET, WASTE, Scenario
from devcluster.monitoring import profiles
from devcluster.processes.console import UserError
from tests.devcluster.controlplane.test_hardware import Json

ALL = (EVERYDAY, MORNING, QUIET, WASTE)


def test_an_unknown_one_is_told_which_there_are() -> None:
    with pytest.raises(UserError, match=r"There is no scenario evening\.") as raised:
        command.demo(_parser().parse_args(["demo", "--scenario", "evening"]))
    assert raised.value.way_on == "Scenarios: morning, quiet, waste. Without --scenario the everyday demo starts."


@pytest.mark.parametrize("beside", [["--hardware", "mixed"], ["--kubeconfig", "x"], ["--check"]], ids=lambda b: b[0])
@pytest.mark.parametrize("name", ["morning", "waste"])
def test_nothing_stands_beside_one_that_it_would_contradict(name: str, beside: list[str]) -> None:
    with pytest.raises(UserError, match="has its own") as raised:
        command.demo(_parser().parse_args(["demo", "--scenario", name, *beside]))
    assert raised.value.way_on == f"Omit {beside[0]}, or omit --scenario."


def test_each_has_its_own_state_and_known_hardware() -> None:
    assert len({one.folder for one in ALL}) == len(ALL)
    assert {one.hardware for one in ALL} <= set(hardware.names())
    assert scenarios.scenario_named("") is EVERYDAY
    assert scenarios.scenario_named("morning") is MORNING
    assert scenarios.scenario_named("quiet") is QUIET
    assert scenarios.scenario_named("waste") is WASTE


def test_only_what_launches_nothing_starts_on_a_real_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Scenario] = []
    monkeypatch.setattr(check, "check", lambda arguments, scenario: begun.append(scenario) or 0)
    for given in ([], ["--kubeconfig", "x"], ["--scenario", "quiet", "--kubeconfig", "x"]):
        command.demo(_parser().parse_args(["demo", "--check", *given]))
    assert begun == [EVERYDAY, QUIET, QUIET]
    assert [one for one in ALL if one.runs_anywhere] == [QUIET]


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name or "everyday")
def test_members_have_an_owner_and_storage_an_owners_team(one: Scenario) -> None:
    owned = {team: name.lower() for name, role, team in one.cast if role == "owner"}
    assert {team for _name, role, team in one.cast if role == "member"} <= owned.keys()
    assert all(owned[team] == name for name, team, _gib in one.storage)


def test_the_morning_asks_for_36_of_32_cards_and_has_room_for_who_moves() -> None:
    there = _units(hardware.read("morning").nodes)
    held: dict[str, int] = {}
    for _owner, _team, units, _why in contention.HELD:
        for resource, number in units:
            held[resource] = held.get(resource, 0) + number
    assert held[contention.GPU] == there[contention.GPU] == 32
    asked = 4 * len(contention.TRAININGS) + len(contention.MODELS) + len(contention.NOTEBOOKS)
    begun = asked - len(contention.NOTEBOOKS) + contention.HAVE_ONE
    assert (len(contention.TRAININGS), len(contention.MODELS), len(contention.NOTEBOOKS)) == (4, 12, 8)
    assert (asked, begun) == (36, 32)
    assert len(contention.MODELS) <= held[contention.SLICE] <= there[contention.SLICE]
    assert len(contention.NOTEBOOKS) <= held[contention.SHARE] <= there[contention.SHARE]
    assert len(contention.NOTEBOOKS) <= MORNING.notebooks, "all of them run on this machine in the end"


def test_the_waste_has_a_card_for_each_run_and_half_of_them_do_nothing() -> None:
    there = _units(hardware.read("waste").nodes)
    assert there[idle_gpus.GPU] == len(idle_gpus.RUNS) == 8
    of_team = Counter(team for team, *_ in idle_gpus.RUNS)
    assert of_team == {team: units for _, team, units, _ in idle_gpus.HELD}
    assert Counter(profile == profiles.STEADY for *_, profile in idle_gpus.RUNS) == {True: 4, False: 4}


def test_only_the_waste_has_a_past() -> None:
    assert [one.name for one in ALL if one.past_hours] == ["waste"]


HOURS = timedelta(hours=6)
NOW = datetime(2027, 1, 15, 12, tzinfo=UTC).timestamp()


def test_conditions_of_an_admission_move_together_and_once() -> None:
    at = {"QuotaReserved": "2027-01-15T11:59:01Z", "Admitted": "2027-01-15T11:59:02Z"}
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": since} for kind, since in at.items()]
    moved = past.moved_conditions(conditions, HOURS, now=NOW)
    assert {one["type"]: one["lastTransitionTime"] for one in moved} == {
        "QuotaReserved": "2027-01-15T05:59:01Z",
        "Admitted": "2027-01-15T05:59:02Z",
    }
    assert {one["status"] for one in moved} == {"True"}
    assert past.moved_conditions(moved, HOURS, now=NOW) == []
    assert past.moved_conditions(conditions[:1], HOURS, now=NOW) == [], "a queued one stays"


def test_descriptions_of_two_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "STATES", tmp_path)
    found = {path for one in (EVERYDAY, MORNING) for path in environment.description_files(tmp_path / one.folder)}
    names = ("demo.json", "demo/demo.json", "demo-morning.json", "demo-morning/demo.json")
    assert found == {tmp_path / name for name in names}
    assert environment.description_files(tmp_path / "elsewhere" / "x") == [tmp_path / "elsewhere" / "x" / "demo.json"]


def _units(nodes: tuple[Json, ...]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for node in nodes:
        for resource, amount in node["status"]["allocatable"].items():
            if "/" in resource:
                found[resource] = found.get(resource, 0) + int(amount)
    return found
