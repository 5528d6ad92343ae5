"""Pages about people: a team with its members and objects, and the start of somebody who is in none."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from accounts.actor import Actor
from accounts.edge import actor
from cluster import status
from portal.due import owner_label
from portal.errors import get_or_refuse, refusal_beside
from tenants import actions, life_views, policy, queries, shown, token_policy
from tenants.forms import AnswerForm, JoinForm, MemberForm, RoleForm
from tenants.founding_forms import TeamForm
from tenants.goes import LookInside
from tenants.models import Invitation, Membership, TeamRequest, Tenant
from tenants.queries import founding, joining
from tenants.queries.objects import unsent

# ---- the team ----------------------------------------------------------------------------------------------------


@login_required
@require_GET
def team(request: HttpRequest, tenant: str, look_inside: LookInside | None = None) -> HttpResponse:
    return render(request, "tenants/team.html", _team_context(tenant, actor(request), MemberForm(), look_inside))


@login_required
@require_POST
def member_add(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    form = MemberForm(request.POST)
    get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    if form.is_valid():
        with refusal_beside(form):
            added = actions.add_member(tenant, by=by, **form.cleaned_data)
            if isinstance(added, Invitation):
                messages.success(request, f"{added.email} has no account here yet and got an invitation by mail.")
            else:
                messages.success(request, f"{added.user.name} is {added.role} now.")
            return redirect("team", tenant)
    return render(request, "tenants/team.html", _team_context(tenant, by, form), status=422)


@login_required
@require_POST
def member_role(request: HttpRequest, tenant: str, pk: int) -> HttpResponse:
    by = actor(request)
    get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    form = RoleForm(request.POST)
    if form.is_valid():
        with refusal_beside(form):
            member = actions.set_role(tenant, user_id=pk, role=form.cleaned_data["role"], by=by)
            messages.success(request, f"{member.user.name} is {member.role} now.")
            return redirect("team", tenant)
    messages.error(request, form.first_error)
    return redirect("team", tenant)


@login_required
@require_POST
def member_remove(request: HttpRequest, tenant: str, pk: int) -> HttpResponse:
    by = actor(request)
    actions.remove_member(tenant, user_id=pk, by=by)
    if pk == by.user_id:
        # The team's page is not theirs any more.
        messages.success(request, "You left the team.")
        return redirect("home")
    messages.success(request, "Removed from the team.")
    return redirect("team", tenant)


@login_required
@require_POST
def invitation_revoke(request: HttpRequest, tenant: str, pk: int) -> HttpResponse:
    actions.revoke_invitation(tenant, pk, by=actor(request))
    messages.success(request, "The invitation is taken back.")
    return redirect("team", tenant)


@login_required
@require_POST
def join_answer(request: HttpRequest, tenant: str, pk: int) -> HttpResponse:
    by = actor(request)
    get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    form = AnswerForm(request.POST)
    if form.is_valid():
        typed = form.cleaned_data
        with refusal_beside(form):
            row = actions.answer_join(
                tenant, pk, accept=typed["answer"] == "accept", role=typed["role"], reason=typed["reason"], by=by
            )
            said = "is a member now" if typed["answer"] == "accept" else "is told why not"
            messages.success(request, f"{row.user.name} {said}.")
            return redirect("team", tenant)
    context = _team_context(tenant, by, MemberForm()) | {"answer_form": form, "answered": pk}
    waiting = context["waiting"]
    if waiting is None or all(row.pk != pk for row in waiting.joins):
        # Somebody answered meanwhile: it stands in no list any more, beside which its error could.
        messages.error(request, str(next(iter(form.errors.values()))[0]))
    return render(request, "tenants/team.html", context, status=422)


def _team_context(slug: str, by: Actor, form: MemberForm, look_inside: LookInside | None = None) -> dict[str, Any]:
    found = get_or_refuse(Tenant.objects.visible_to(by), slug=slug)
    standing = queries.standing(by, found)
    members = list(Membership.objects.filter(tenant=found).select_related("user").order_by("since", "pk"))
    owners = sum(member.role == Membership.Role.OWNER for member in members)
    namespace = found.namespaces.select_related("cluster", "tenant").first()
    objects = queries.namespace_objects(namespace) if namespace else []
    absent = status.missing(namespace.cluster_id, owner=owner_label(namespace)) if namespace else set()
    may_manage = policy.may_manage_members(by, standing)
    return {
        "tenant": found,
        "members": [
            {
                "pk": member.user_id,
                "name": member.user.name,
                "email": member.user.email,
                "role": member.role,
                "since": member.since,
                "is_self": member.user_id == by.user_id,
                "roles": [] if may_manage else _roles_for(by, standing, member, owners),
                "refusal": policy.may_remove_member(
                    by, standing, role=member.role, is_self=member.user_id == by.user_id, owners=owners
                ),
            }
            for member in members
        ],
        "namespace": shown.namespace(namespace, objects, absent, unsent(namespace, objects)) if namespace else None,
        **life_views.context(namespace, by, look_inside),
        "may_manage": may_manage,
        "may_see_tokens": token_policy.may_see(by, standing),
        "waiting": None if may_manage else joining.waiting(found),
        "now": timezone.now(),
        "form": form,
    }


def _roles_for(by: Actor, standing: policy.Standing, member: Membership, owners: int) -> list[str]:
    """Roles that `by` may give this member instead; empty where there is no choice."""
    if policy.may_take_role(by, standing, role=member.role, owners=owners):
        return []
    return [role for role in policy.MEMBER_ROLES if role == member.role or not policy.may_give_role(by, standing, role)]


# ---- the start ---------------------------------------------------------------------------------------------------


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
        with refusal_beside(form):
            actions.ask_to_join(form.cleaned_data["team"], message=form.cleaned_data["message"], by=by)
            messages.success(request, "Sent. The owners of the team are told by mail; their answer comes the same way.")
            return redirect("start")
    return start_page(request, join_form=form, status=422)


@login_required
@require_POST
def join_withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    actions.withdraw_join(pk, by=actor(request))
    messages.success(request, "Withdrawn.")
    return redirect("start")


@login_required
@require_POST
def invitation_answer(request: HttpRequest, pk: int) -> HttpResponse:
    by = actor(request)
    if request.POST.get("answer") == "accept":
        membership = actions.accept_invitation(pk, by=by)
        messages.success(request, f"Welcome to {membership.tenant.name}.")
        return redirect("tenant-home", membership.tenant.slug)
    actions.decline_invitation(pk, by=by)
    messages.success(request, "Declined.")
    return redirect("start")


def start_page(
    request: HttpRequest, *, join_form: JoinForm | None = None, team_form: TeamForm | None = None, status: int = 200
) -> HttpResponse:
    """With what was typed into one of its forms and refused."""
    by, form = actor(request), join_form or JoinForm()
    text = request.GET.get("q", "") or (form.data.get("team", "") if form.is_bound else "")
    bundles = founding.bundle_rows(founding.bundles())
    asked = list(founding.own(by)[: founding.OWN_MAX])
    context = {
        "q": text,
        "found": joining.teams_found(by, text),
        "is_searched": len(text.strip()) >= joining.LETTERS_MIN,
        "invitations": joining.invitations_for(by, at=timezone.now()),
        "joins": joining.joins_of(by),
        "form": form,
        "teams_asked": asked,
        "is_team_asked": any(row.state == TeamRequest.State.PENDING for row in asked),
        "bundles": bundles,
        "trial": founding.trial(by, at=queries.now()),
        "team_form": team_form or TeamForm(bundles=bundles),
    }
    return render(request, "tenants/start.html", context, status=status)
