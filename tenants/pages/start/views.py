"""The start page and its forms; an error in a form shows the page again, with the error."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from accounts.core.request_actor import actor
from portal.web.refusals import refusal_in_form
from tenants.core import queries as core_queries
from tenants.members.forms import JoinForm
from tenants.members.invitations import actions as invitation_actions
from tenants.members.invitations import queries as invitation_queries
from tenants.models import TeamRequest
from tenants.onboarding.bundles import queries as bundle_queries
from tenants.onboarding.team_requests import actions as team_request_actions
from tenants.onboarding.team_requests import queries as team_request_queries
from tenants.onboarding.team_requests.forms import TeamForm
from tenants.onboarding.trials import queries as trial_queries


@login_required
@require_POST
def team_request_new(request: HttpRequest) -> HttpResponse:
    form = TeamForm(request.POST, bundles=bundle_queries.bundle_rows(bundle_queries.open_bundles()))
    if form.is_valid():
        with refusal_in_form(form):
            team_request_actions.request_team(by=actor(request), **form.cleaned_data)
            messages.success(request, "Request sent. Approvers are notified by email; you get the decision by email.")
            return redirect("start")
    return start_page(request, team_form=form, status=422)


@login_required
@require_GET
def start(request: HttpRequest) -> HttpResponse:
    return start_page(request)


@login_required
@require_POST
def join(request: HttpRequest) -> HttpResponse:
    by = actor(request)
    form = JoinForm(request.POST)
    if form.is_valid():
        with refusal_in_form(form):
            invitation_actions.ask_to_join(form.cleaned_data["team"], message=form.cleaned_data["message"], by=by)
            messages.success(
                request, "Request sent. The owners of the team are notified by email; you get their answer by email."
            )
            return redirect("start")
    return start_page(request, join_form=form, status=422)


@login_required
@require_POST
def join_withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    invitation_actions.withdraw_join(pk, by=actor(request))
    messages.success(request, "Withdrawn.")
    return redirect("start")


@login_required
@require_POST
def invitation_answer(request: HttpRequest, pk: int) -> HttpResponse:
    by = actor(request)
    if request.POST.get("answer") == "accept":
        membership = invitation_actions.accept_invitation(pk, by=by)
        messages.success(request, f"Welcome to {membership.tenant.name}.")
        return redirect("tenant-home", membership.tenant.slug)
    invitation_actions.decline_invitation(pk, by=by)
    messages.success(request, "Declined.")
    return redirect("start")


def start_page(
    request: HttpRequest, *, join_form: JoinForm | None = None, team_form: TeamForm | None = None, status: int = 200
) -> HttpResponse:
    """With the input of a refused form."""
    by, form = actor(request), join_form or JoinForm()
    text = request.GET.get("q", "") or (form.data.get("team", "") if form.is_bound else "")
    bundles = bundle_queries.bundle_rows(bundle_queries.open_bundles())
    asked = list(team_request_queries.own_team_requests(by)[: team_request_queries.OWN_MAX])
    context = {
        "q": text,
        "found": invitation_queries.joinable_teams(by, text),
        "is_searched": len(text.strip()) >= invitation_queries.SEARCH_LETTERS_MIN,
        "invitations": invitation_queries.invitations_for(by, at=timezone.now()),
        "joins": invitation_queries.join_requests_of(by),
        "form": form,
        "teams_asked": asked,
        "is_team_asked": any(row.state == TeamRequest.State.PENDING for row in asked),
        "bundles": bundles,
        "trial": trial_queries.trial_offer(by, at=core_queries.database_now()),
        "team_form": team_form or TeamForm(bundles=bundles),
    }
    return render(request, "tenants/pages/start/start.html", context, status=status)
