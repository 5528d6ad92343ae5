"""Requests the stop of a run. All actions and rules that stop a run use this module."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.db.models.functions import Now

from portal.core.due import touch
from portal.core.hints import page_hint
from workloads.models import Run, Workload

MESSAGE_LIMIT = Run._meta.get_field("stop_message").max_length
ANY = Q()


def request_stop(workload: Workload, condition: Q = ANY, *, reason: str = "", message: str = "", **also: Any) -> bool:
    """Requests the stop of the workload's unfinished run. Returns whether it was requested now and not before. Needs a
    transaction.

    `condition`: what else must be true of the run at this moment. `reason` and `message`: of a rule or a newer run;
    empty for a user. `also`: other columns to set with it. Wakes the worker and notifies open pages.
    """
    alive = Run.objects.filter(condition, workload=workload, ended_at=None, stop_requested_at=None)
    said = {"stop_reason": reason, "stop_message": message[:MESSAGE_LIMIT]} if reason else {}
    if not alive.update(stop_requested_at=Now(), **said, **also):
        return False
    announce(workload)
    return True


def announce(workload: Workload) -> None:
    """The desired state has changed: wakes the worker and notifies open pages."""
    touch(Workload, workload.pk)
    page_hint(workload.namespace.name)
