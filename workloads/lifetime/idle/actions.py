"""Keeps an idle notebook for some hours, with a reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.actions import record
from portal.core.due import touch
from portal.core.errors import refuse_if
from portal.core.hints import page_hint
from workloads.core import policy as core_policy
from workloads.core import queries as core_queries
from workloads.lifetime.idle import policy as idle_policy
from workloads.models import NotebookWatch, Run


@transaction.atomic
def keep_notebook(tenant: str, name: str, *, hours: int, reason: str, by: Actor) -> NotebookWatch:
    """The notebook is not stopped for being idle for this many hours from now; after that, users are warned again
    before a stop.

    Raises Refused: not_found (404), not_allowed (403), not_running, no_idle_rule (409), bad_hours, no_reason (422).
    """
    namespace, team = core_queries.team(by, tenant)
    workload = core_queries.undeleted_workload(by, namespace, name)
    run = core_queries.last_run(workload)
    found = core_queries.run_facts(workload, run)
    refuse_if(core_policy.may_manage(by, team, found, "keep"))
    rows_of_run = NotebookWatch.objects.select_for_update(of=("self",), no_key=True).filter(run=run)
    watch = rows_of_run.first() if run else None
    refuse_if(idle_policy.may_keep(found, is_watched=_has_rule(watch, run), hours=hours, reason=reason))
    assert watch is not None
    before: dict[str, Any] = {"kept_until": watch.kept_until}
    watch.kept_until = timezone.now() + timedelta(hours=hours)
    watch.kept_reason, watch.kept_by = " ".join(reason.split()), by.user
    watch.warned_at = watch.stops_at = None
    watch.save(update_fields=["kept_until", "kept_reason", "kept_by", "warned_at", "stops_at"])
    touch(NotebookWatch, watch.pk)
    after = {"kept_until": watch.kept_until, "reason": watch.kept_reason}
    record(by, "notebook.kept", workload, tenant=tenant, before=before, after=after)
    page_hint(namespace.name)
    return watch


def _has_rule(watch: NotebookWatch | None, run: Run | None) -> bool:
    """A watch without it only asks the notebook."""
    return watch is not None and run is not None and bool(run.spec.get("idle_stop_minutes"))
