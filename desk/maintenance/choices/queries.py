"""The maintenances that a run is affected by, as its page and the API show them to a person."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from accounts.core.actor import Actor
from operations.maintenance.choices.policy import RESTART, choice_refusal, may_choose
from operations.maintenance.choices.queries import maintenances_of
from operations.maintenance.notifications import consequence
from portal.core.errors import Refusal
from workloads.core.policy import TeamFacts
from workloads.core.queries import run_facts
from workloads.models import Run, Workload


@dataclass(frozen=True)
class DrainChoice:
    """`at_drain`: what happens, `is_chosen`: because somebody chose it. `choice`: what was chosen, "" for nothing;
    `if_there`: what happens by that if the run has not ended. `is_stopping`: nothing keeps it until the drain;
    `is_movable`: it could start elsewhere. `refusal`: why this person cannot choose now. `what`: what the maintenance
    does to the run, in sentences.
    """

    pk: int
    reason: str
    starts_at: datetime
    ends_at: datetime
    nodes: tuple[str, ...]
    at_drain: str
    is_chosen: bool
    choice: str
    if_there: str
    is_stopping: bool
    is_movable: bool
    what: str
    refusal: Refusal | None


def drain_choices(by: Actor, team: TeamFacts, workload: Workload, run: Run | None) -> list[DrainChoice]:
    """By start. Two queries, one if the run is on no node."""
    found = maintenances_of(workload, run)
    if run is None or not found:
        return []
    run.workload = workload
    refusal = may_choose(by, team, run_facts(workload, run))
    return [
        DrainChoice(
            one.row.pk,
            one.row.reason,
            one.row.starts_at,
            one.row.ends_at,
            one.nodes,
            one.at_drain.what,
            one.at_drain.is_chosen,
            one.at_drain.choice,
            one.at_drain.if_there,
            run.stop_requested_at is not None,
            one.row.cluster.has_kueue,
            consequence(one.row, run),
            refusal or choice_refusal(RESTART, is_concerned=True, drained=one.drained),
        )
        for one in found
    ]
