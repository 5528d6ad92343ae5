"""Pages of administrators: the list of accounts, and for each account its roles, the classes it decides, its
suspension.
"""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.account_setup import actions as account_setup_actions
from accounts.account_setup import policy as account_setup_policy
from accounts.api_tokens import queries as api_token_queries
from accounts.core.actor import Actor
from accounts.core.request_actor import administrator
from accounts.credentials import actions as credential_actions
from accounts.credentials import policy as credential_policy
from accounts.events import queries as event_queries
from accounts.models import Role, User
from accounts.people import actions, policy, queries
from accounts.rest.paging import page_of
from portal.core.errors import get_or_refuse, refuse
from portal.web.refusals import refusal_in_form
from tenants.approvers import actions as approver_actions
from tenants.approvers import policy as approver_policy
from tenants.approvers.delegation.queries import roles_lent_to
from tenants.people import shown
from tenants.people.forms import EVERY_CLASS, ApproverClassForm, PeopleFilterForm, PersonForm, RolesForm
from tenants.people.queries import person_rows, teams_of

EVENTS_SHOWN = 10


@login_required
@require_GET
def people(request: HttpRequest) -> HttpResponse:
    administrator(request)
    form = PeopleFilterForm(request.GET)
    form.is_valid()
    chosen = {name: form.cleaned_data.get(name, "") for name in form.fields}
    suspended = chosen["state"] == "suspended" if chosen["state"] else None
    found = queries.search_people(chosen["q"], chosen["role"], suspended=suspended)
    page = page_of(found, keys=("email",), cursor=request.GET.get("cursor"))
    context = {
        "rows": person_rows(page.items),
        "chosen": chosen,
        "is_filtered": any(chosen.values()),
        "roles": Role.choices,
        "states": ("active", "suspended"),
        "next_cursor": page.next_cursor,
    }
    return render(request, "tenants/people/people.html", context)


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def person_new(request: HttpRequest) -> HttpResponse:
    by = administrator(request)
    form = PersonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with refusal_in_form(form):
            return _code(request, *account_setup_actions.add_person(**form.cleaned_data, by=by))
    return render(request, "tenants/people/person_new.html", {"form": form}, status=422 if form.is_bound else 200)


@login_required
@never_cache
@require_POST
def person_password_code(request: HttpRequest, pk: int) -> HttpResponse:
    return _code(
        request, *account_setup_actions.make_password_code(pk, lent_to=roles_lent_to, by=administrator(request))
    )


def _code(request: HttpRequest, target: User, code: str) -> HttpResponse:
    """The code is only in this one response."""
    context = {"person": target, "code": code, "days": account_setup_actions.CODE_DAYS}
    return render(request, "tenants/people/password_code.html", context)


@login_required
@require_GET
def person(request: HttpRequest, pk: int) -> HttpResponse:
    return _page(request, administrator(request), get_or_refuse(User.objects.all(), pk=pk))


@login_required
@require_POST
def person_roles(request: HttpRequest, pk: int) -> HttpResponse:
    by = administrator(request)
    target = get_or_refuse(User.objects.all(), pk=pk)
    form = RolesForm(request.POST)
    if form.is_valid():
        with refusal_in_form(form):
            target = actions.set_roles(pk, form.cleaned_data["roles"], by=by)
            said = ", ".join(target.roles) or "no staff role"
            messages.success(
                request, f"Roles of {target.name} are now: {said}. This takes effect with the next request."
            )
            return redirect("person", pk)
    return _page(request, by, target, roles_form=form)


@login_required
@require_POST
def person_suspend(request: HttpRequest, pk: int) -> HttpResponse:
    by = administrator(request)
    target = get_or_refuse(User.objects.all(), pk=pk)
    if request.POST.get("confirm", "").strip() != target.email:
        raise refuse("name_differs", f"Type '{target.email}' to confirm. Nothing was changed.", field="confirm")
    actions.suspend_user(pk, because=request.POST.get("because", ""), by=by)
    messages.success(request, f"{target.name} is suspended and signed out everywhere. Tokens no longer work.")
    return redirect("person", pk)


@login_required
@require_POST
def person_restore(request: HttpRequest, pk: int) -> HttpResponse:
    target = actions.restore_user(pk, because=request.POST.get("because", ""), by=administrator(request))
    messages.success(request, f"{target.name} can sign in again, with the same roles and teams as before.")
    return redirect("person", pk)


@login_required
@require_POST
def person_second_factor_drop(request: HttpRequest, pk: int) -> HttpResponse:
    target = credential_actions.drop_second_factor(
        pk, because=request.POST.get("because", ""), lent_to=roles_lent_to, by=administrator(request)
    )
    messages.success(request, f"The second factor of {target.name} was removed. The account is signed out everywhere.")
    return redirect("person", pk)


@login_required
@require_POST
def person_class_grant(request: HttpRequest, pk: int) -> HttpResponse:
    by = administrator(request)
    target = get_or_refuse(User.objects.all(), pk=pk)
    form = ApproverClassForm(request.POST, given=set())
    if form.is_valid():
        with refusal_in_form(form):
            slug, label = form.cleaned_data["gpu_class"], dict(form.fields["gpu_class"].choices)  # type: ignore[attr-defined]
            approver_actions.grant_class(pk, None if slug == EVERY_CLASS else slug, by=by)
            what = approver_actions.ALL_CLASSES if slug == EVERY_CLASS else label[slug]
            messages.success(request, f"{target.name} can now decide requests for {what} and is notified by email.")
            return redirect("person", pk)
    return _page(request, by, target, class_form=form)


@login_required
@require_POST
def person_class_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    by, slug = administrator(request), request.POST.get("gpu_class", "")
    target = approver_actions.revoke_class(pk, None if slug == EVERY_CLASS else slug, by=by)
    what = approver_actions.ALL_CLASSES if slug == EVERY_CLASS else slug
    messages.success(request, f"{target.name} can no longer decide requests for {what} and is notified by email.")
    return redirect("person", pk)


def _page(
    request: HttpRequest,
    by: Actor,
    target: User,
    *,
    roles_form: RolesForm | None = None,
    class_form: ApproverClassForm | None = None,
) -> HttpResponse:
    """With the input of a refused form."""
    row = person_rows([target])[0]
    given = {one.slug for one in row.decides} | ({EVERY_CLASS} if row.decides_all else set())
    lent = roles_lent_to(target)
    others = queries.active_administrators().exclude(pk=target.pk).count()
    context = {
        "row": row,
        "teams": teams_of(target),
        "tokens": api_token_queries.all_tokens(owner=target.email).count(),
        "may_set_roles": policy.may_set_roles(by, target, target.roles, other_admins=others),
        "may_suspend": policy.may_suspend(by, target, other_admins=others),
        "may_make_code": account_setup_policy.may_make_password_code(by, target, lent=lent),
        "may_drop_factor": credential_policy.may_drop_second_factor(by, target, lent=lent),
        "may_change_right": approver_policy.may_change_classes(by, approver=target.pk)
        or approver_policy.may_be_given_classes(target.name, is_approver=row.is_approver),
        "may_take_right": approver_policy.may_change_classes(by, approver=target.pk),
        "roles_form": roles_form or RolesForm(initial={"roles": target.roles}),
        "class_form": class_form or ApproverClassForm(given=given),
        "because_max": policy.REASON_MAX,
        "all": EVERY_CLASS,
        "events": [shown.account_event(one) for one in event_queries.events_of_row(target)[:EVENTS_SHOWN]],
    }
    return render(request, "tenants/people/person.html", context, status=422 if roles_form or class_form else 200)
