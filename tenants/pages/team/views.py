"""The page of a team, with its members."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from cluster.apply import queries as apply_queries
from portal.core.due import owner_label
from portal.core.errors import get_or_refuse
from portal.web.refusals import refusal_in_form
from tenants.lifecycle import shown as lifecycle_shown
from tenants.lifecycle.contents import ReadContents
from tenants.members import actions, policy, queries
from tenants.members.forms import JoinAnswerForm, MemberForm, RoleForm, SharingForm
from tenants.members.invitations import actions as invitation_actions
from tenants.members.invitations import queries as invitation_queries
from tenants.members.tokens import policy as token_policy
from tenants.models import Invitation, Membership, Tenant
from tenants.provisioning import queries as provisioning_queries
from tenants.provisioning import shown
from tenants.provisioning.queries import missing_objects

# What a higher app shows on the page of a team, as context of its template.
ReadIdle = Callable[[Tenant], dict[str, Any]]

# ---- the team page and its members -------------------------------------------------------------------------------


@login_required
@require_GET
def team(
    request: HttpRequest, tenant: str, look_inside: ReadContents | None = None, read_idle: ReadIdle | None = None
) -> HttpResponse:
    context = _team_context(tenant, actor(request), MemberForm(), look_inside)
    return render(
        request, "tenants/pages/team/team.html", context | (read_idle(context["tenant"]) if read_idle else {})
    )


@login_required
@require_POST
def member_add(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    form = MemberForm(request.POST)
    get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    if form.is_valid():
        with refusal_in_form(form):
            added = actions.add_member(tenant, by=by, **form.cleaned_data)
            if isinstance(added, Invitation):
                messages.success(request, f"{added.email} has no account yet. An invitation was sent by email.")
            else:
                messages.success(request, f"{added.user.name} now has the role {added.role}.")
            return redirect("team", tenant)
    return render(request, "tenants/pages/team/team.html", _team_context(tenant, by, form), status=422)


@login_required
@require_POST
def member_role(request: HttpRequest, tenant: str, pk: int) -> HttpResponse:
    by = actor(request)
    get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    form = RoleForm(request.POST)
    if form.is_valid():
        with refusal_in_form(form):
            member = actions.set_role(tenant, user_id=pk, role=form.cleaned_data["role"], by=by)
            messages.success(request, f"{member.user.name} now has the role {member.role}.")
            return redirect("team", tenant)
    messages.error(request, form.first_error)
    return redirect("team", tenant)


@login_required
@require_POST
def member_remove(request: HttpRequest, tenant: str, pk: int) -> HttpResponse:
    by = actor(request)
    actions.remove_member(tenant, user_id=pk, by=by)
    if pk == by.user_id:
        # The user can no longer open the team's page.
        messages.success(request, "You left the team.")
        return redirect("home")
    messages.success(request, "Member removed.")
    return redirect("team", tenant)


@login_required
@require_POST
def team_sharing(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    form = SharingForm(request.POST)
    if form.is_valid():
        with refusal_in_form(form):
            actions.set_sharing(tenant, by=by, **form.cleaned_data)
            messages.success(request, "Saved. It applies to notebooks that are launched from now on.")
            return redirect("team", tenant)
    context = _team_context(tenant, by, MemberForm()) | {"sharing": form}
    return render(request, "tenants/pages/team/team.html", context, status=422)


@login_required
@require_POST
def invitation_revoke(request: HttpRequest, tenant: str, pk: int) -> HttpResponse:
    invitation_actions.revoke_invitation(tenant, pk, by=actor(request))
    messages.success(request, "The invitation was revoked.")
    return redirect("team", tenant)


@login_required
@require_POST
def join_answer(request: HttpRequest, tenant: str, pk: int) -> HttpResponse:
    by = actor(request)
    get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    form = JoinAnswerForm(request.POST)
    if form.is_valid():
        typed = form.cleaned_data
        with refusal_in_form(form):
            row = invitation_actions.answer_join(
                tenant, pk, accept=typed["answer"] == "accept", role=typed["role"], reason=typed["reason"], by=by
            )
            name = row.user.name
            declined = f"{name}'s request was declined. {name} is notified."
            messages.success(request, f"{name} is now a member." if typed["answer"] == "accept" else declined)
            return redirect("team", tenant)
    context = _team_context(tenant, by, MemberForm()) | {"answer_form": form, "answered": pk}
    waiting = context["waiting"]
    if waiting is None or all(row.pk != pk for row in waiting.joins):
        # The join request was answered in the meantime, so no row is left beside which its error could be shown.
        messages.error(request, str(next(iter(form.errors.values()))[0]))
    return render(request, "tenants/pages/team/team.html", context, status=422)


def _team_context(slug: str, by: Actor, form: MemberForm, look_inside: ReadContents | None = None) -> dict[str, Any]:
    found = get_or_refuse(Tenant.objects.visible_to(by), slug=slug)
    standing = queries.standing_of(by, found)
    members = list(Membership.objects.filter(tenant=found).select_related("user").order_by("since", "pk"))
    owners = sum(member.role == Membership.Role.OWNER for member in members)
    namespace = found.namespaces.select_related("cluster", "tenant").first()
    objects = provisioning_queries.namespace_objects(namespace) if namespace else []
    absent = apply_queries.missing_objects(namespace.cluster_id, owner=owner_label(namespace)) if namespace else set()
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
                "loses": _losses(member, found, is_self=member.user_id == by.user_id),
                "roles": [] if may_manage else _roles_for(by, standing, member, owners),
                "refusal": policy.may_remove_member(
                    by, standing, role=member.role, is_self=member.user_id == by.user_id, owners=owners
                ),
            }
            for member in members
        ],
        "namespace": shown.namespace_context(namespace, objects, absent, missing_objects(namespace, objects))
        if namespace
        else None,
        **lifecycle_shown.lifecycle_context(namespace, by, look_inside),
        "may_manage": may_manage,
        "may_set_sharing": policy.may_set_sharing(by, standing),
        "sharing": SharingForm(initial={"shares_notebooks": found.shares_notebooks}),
        "may_see_tokens": token_policy.may_see_team_tokens(by, standing),
        "waiting": None if may_manage else invitation_queries.pending_members(found),
        "now": timezone.now(),
        "form": form,
    }


def _losses(member: Membership, team: Tenant, *, is_self: bool) -> str:
    """States what ends with a membership: see actions.remove_member and workloads/lifetime/offboarding.py."""
    kept = "Jobs continue, and volumes stay with the team."
    if is_self:
        return (
            f"You lose access to {team.name} at once: its pages, notebooks, volumes, secrets. Your running notebooks "
            f"are stopped, and tokens that you created for the team stop working. {kept} Only an owner or manager can "
            "add you again."
        )
    return (
        f"{member.user.name} loses access to {team.name} at once. Their running notebooks are stopped, and tokens that "
        f"they created for the team stop working. {kept} You can add {member.user.name} again."
    )


def _roles_for(by: Actor, standing: policy.Standing, member: Membership, owners: int) -> list[str]:
    """Returns the roles that `by` may give this member instead; empty if there is no choice."""
    if policy.may_take_role(by, standing, role=member.role, owners=owners):
        return []
    return [role for role in policy.MEMBER_ROLES if role == member.role or not policy.may_give_role(by, standing, role)]
