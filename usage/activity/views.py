"""What GPUs did, as fragments of the pages of a workload, a team, a class and the cluster: they load after the page."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.core.request_actor import actor, staff
from cluster.reads import queries as read_queries
from usage.activity import queries as activity_queries
from usage.activity.types import ClassActivity
from workloads.core import queries


@login_required
@require_GET
def workload_activity(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """Of the last run."""
    by = actor(request)
    found = activity_queries.workload_activity(by, queries.visible_workload(by, tenant, name))
    return render(request, "usage/activity/_run.html", {"activity": found, "tenant": tenant, "name": name})


@login_required
@require_GET
def team_activity_by_day(request: HttpRequest, tenant: str) -> HttpResponse:
    namespace, _team = queries.team(actor(request), tenant)
    return _days(request, activity_queries.team_classes(namespace), of="team")


@login_required
@require_GET
def class_activity_by_day(request: HttpRequest, slug: str) -> HttpResponse:
    """Of all teams together, for all who may see the class."""
    return _days(request, [activity_queries.class_activity(actor(request), slug)], of="class")


@login_required
@require_GET
def cluster_activity_by_day(request: HttpRequest) -> HttpResponse:
    """For operators, administrators and auditors; 404 for all other users."""
    staff(request)
    return _days(request, activity_queries.cluster_activity(read_queries.current_cluster()), of="cluster")


def _days(request: HttpRequest, classes: Sequence[ClassActivity], *, of: str) -> HttpResponse:
    # All classes of a cluster are read at once: the one that was measured most tells of all.
    read = max((one for one in classes if one.read_until), key=lambda one: one.measured, default=None)
    return render(request, "usage/activity/_days.html", {"classes": classes, "read": read, "of": of})
