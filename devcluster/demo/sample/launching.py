"""Launches demo workloads in a reproducible order, with the portal's own actions. Needs Django and a running portal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accounts.core.actor import Actor
    from workloads.launch.types import LaunchSpec

WITHIN_S = 180.0
LOOKS_EVERY_S = 0.1


def launch_all(team: str, wanted: Sequence[tuple[LaunchSpec, Actor]]) -> None:
    """Launches all of them, then waits until all are admitted."""
    from workloads.models import Run

    launched = [one.name for one, who in wanted if begin(team, one, who)]
    runs = Run.objects.filter(workload__tenant__slug=team, workload__name__in=launched)
    wait_until(f"admission of {len(launched)} workloads of {team}", lambda: not runs.filter(admitted_at=None).exists())


def queue(team: str, wanted: LaunchSpec, by: Actor) -> None:
    """Launches a workload and waits until Kueue has queued it and a second has passed. Kueue orders by creation time in
    whole seconds, so a later workload is then certainly behind it.
    """
    from django.utils import timezone

    from cluster.models import MirrorJob, MirrorWorkload

    if not begin(team, wanted, by):
        return

    def is_behind() -> bool:
        uids = MirrorJob.objects.filter(namespace=team, name=f"{wanted.name}-1").values("uid")
        queued = MirrorWorkload.objects.filter(namespace=team, job_uid__in=uids).first()
        return queued is not None and timezone.now() >= queued.created_at + timedelta(seconds=1)

    wait_until(f"{wanted.name} in the queue of {team}", is_behind)


def begin(team: str, wanted: LaunchSpec, by: Actor) -> bool:
    """Launches the workload. Returns False if an earlier start launched it, even if it was deleted since."""
    from workloads.launch import actions
    from workloads.models import Workload

    if Workload.objects.filter(tenant__slug=team, name=wanted.name).exists():
        return False
    actions.launch(team, wanted, by=by)
    return True


def wait_until(what: str, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not is_so():
        if time.monotonic() > deadline:
            sys.exit(f"No {what} within {WITHIN_S:.0f} s. Start the demo again: it continues from here.")
        time.sleep(LOOKS_EVERY_S)
