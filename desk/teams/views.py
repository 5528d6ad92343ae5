"""The page with all teams, for operators, administrators and auditors, and the same rows as CSV."""

from __future__ import annotations

from dataclasses import replace

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.core.request_actor import staff
from cluster.reads import queries as read_queries
from desk.teams import queries
from desk.teams.export import teams_csv
from desk.teams.forms import TeamFilterForm
from desk.teams.shown import shown_row
from portal.core.csv_text import CONTENT_TYPE


@login_required
@require_GET
def team_list(request: HttpRequest) -> HttpResponse:
    """404 for all others, as for the CSV."""
    by = staff(request)
    cluster = read_queries.current_cluster()
    form = TeamFilterForm(request.GET, cluster=cluster)
    chosen = form.chosen()
    page = queries.read_teams(cluster, chosen, cursor=request.GET.get("cursor"))
    context = {
        "page": page,
        "rows": [shown_row(row) for row in page.rows],
        "is_stale": not page.as_of.is_current,
        "form": form,
        "class_field": form["class"],
        "next_cursor": page.next_cursor,
        "may_import": by.operates,
        "is_filtered": replace(chosen, sort="team") != queries.ALL_TEAMS,
    }
    return render(request, "desk/teams/teams.html", context)


@login_required
@require_GET
def teams_as_csv(request: HttpRequest) -> HttpResponse:
    """By team, whatever the order of the page: other orders read all teams for each batch."""
    staff(request)
    cluster = read_queries.current_cluster()
    chosen = replace(TeamFilterForm(request.GET, cluster=cluster).chosen(), sort="team")
    text = teams_csv(queries.every_team(cluster, chosen))
    named = {"Content-Disposition": 'attachment; filename="teams.csv"'}
    return HttpResponse(text, content_type=CONTENT_TYPE, headers=named)
