"""Pages for administrators: everybody with an account, and of each the roles, the classes to decide, the suspension."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts import actions, policy, queries, signing, welcome
from accounts.actor import Actor
from accounts.edge import administrator
from accounts.known_fields import KnownFieldsForm
from accounts.models import Role, User
from accounts.paging import page_of
from catalog import queries as catalog
from catalog.models import GpuClass
from portal.errors import get_or_refuse, refusal_beside, refuse
from tenants import approvers, deputy_policy, shown
from tenants.queries.people import person_rows, teams_of

# What stands for every class in the form; no slug has a star.
ALL = "*"
EVENTS_SHOWN = 10


class Filter(forms.Form):
    """What cannot be read filters nothing."""

    q = forms.CharField(required=False, max_length=80)
    role = forms.ChoiceField(required=False, choices=[("", "Any"), *Role.choices])
    state = forms.ChoiceField(required=False, choices=[("", "Any"), ("active", "active"), ("suspended", "suspended")])


class RolesForm(KnownFieldsForm):
    roles = forms.MultipleChoiceField(required=False, choices=Role.choices, widget=forms.CheckboxSelectMultiple)


class PersonForm(KnownFieldsForm):
    email = forms.EmailField(label="E-mail address", max_length=policy.ADDRESS_MAX)
    name = forms.CharField(max_length=policy.NAME_MAX)


class ClassForm(KnownFieldsForm):
    gpu_class = forms.ChoiceField(label="Class")

    def __init__(self, *args: Any, given: set[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # People are there before a cluster is.
        rows = GpuClass.objects.filter(cluster__name=settings.CLUSTER_NAME, life_cycle__in=catalog.OPEN).order_by(
            "slug"
        )
        open_ones = [(one.slug, one.name) for one in rows if one.slug not in given]
        every = [] if ALL in given else [(ALL, "Every class, also those to come")]
        self.fields["gpu_class"].choices = [("", "Choose"), *every, *open_ones]  # type: ignore[attr-defined]


@login_required
@require_GET
def people(request: HttpRequest) -> HttpResponse:
    administrator(request)
    form = Filter(request.GET)
    form.is_valid()
    chosen = {name: form.cleaned_data.get(name, "") for name in form.fields}
    suspended = chosen["state"] == "suspended" if chosen["state"] else None
    found = queries.people(chosen["q"], chosen["role"], suspended=suspended)
    page = page_of(found, keys=("email",), cursor=request.GET.get("cursor"))
    context = {
        "rows": person_rows(page.items),
        "chosen": chosen,
        "is_filtered": any(chosen.values()),
        "roles": Role.choices,
        "states": ("active", "suspended"),
        "next_cursor": page.next_cursor,
    }
    return render(request, "tenants/people.html", context)


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def person_new(request: HttpRequest) -> HttpResponse:
    by = administrator(request)
    form = PersonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with refusal_beside(form):
            return _code(request, *welcome.add_person(**form.cleaned_data, by=by))
    return render(request, "tenants/person_new.html", {"form": form}, status=422 if form.is_bound else 200)


@login_required
@never_cache
@require_POST
def person_password_code(request: HttpRequest, pk: int) -> HttpResponse:
    return _code(request, *welcome.make_password_code(pk, by=administrator(request)))


def _code(request: HttpRequest, target: User, code: str) -> HttpResponse:
    """It stands in this one answer and nowhere else."""
    context = {"person": target, "code": code, "days": welcome.CODE_DAYS}
    return render(request, "tenants/password_code.html", context)


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
        with refusal_beside(form):
            target = actions.set_roles(pk, form.cleaned_data["roles"], by=by)
            said = ", ".join(target.roles) or "no role of staff"
            messages.success(request, f"{target.name} has {said} now. It counts from the next click or call on.")
            return redirect("person", pk)
    return _page(request, by, target, roles_form=form)


@login_required
@require_POST
def person_suspend(request: HttpRequest, pk: int) -> HttpResponse:
    by = administrator(request)
    target = get_or_refuse(User.objects.all(), pk=pk)
    if request.POST.get("confirm", "").strip() != target.email:
        raise refuse("name_differs", f"Type '{target.email}' to suspend it; nothing was changed.", field="confirm")
    actions.suspend_user(pk, because=request.POST.get("because", ""), by=by)
    messages.success(request, f"{target.name} is suspended: signed out everywhere, and no token works any more.")
    return redirect("person", pk)


@login_required
@require_POST
def person_restore(request: HttpRequest, pk: int) -> HttpResponse:
    target = actions.restore_user(pk, because=request.POST.get("because", ""), by=administrator(request))
    messages.success(request, f"{target.name} may sign in again, with the roles and teams of before.")
    return redirect("person", pk)


@login_required
@require_POST
def person_second_factor_drop(request: HttpRequest, pk: int) -> HttpResponse:
    target = signing.drop_second_factor(pk, because=request.POST.get("because", ""), by=administrator(request))
    messages.success(request, f"{target.name} has no second factor any more, and is signed out everywhere.")
    return redirect("person", pk)


@login_required
@require_POST
def person_decides(request: HttpRequest, pk: int) -> HttpResponse:
    by = administrator(request)
    target = get_or_refuse(User.objects.all(), pk=pk)
    form = ClassForm(request.POST, given=set())
    if form.is_valid():
        with refusal_beside(form):
            slug, label = form.cleaned_data["gpu_class"], dict(form.fields["gpu_class"].choices)  # type: ignore[attr-defined]
            approvers.let_decide(pk, None if slug == ALL else slug, by=by)
            what = approvers.ALL_CLASSES if slug == ALL else label[slug]
            messages.success(request, f"{target.name} decides requests for {what} now, and is told by mail.")
            return redirect("person", pk)
    return _page(request, by, target, class_form=form)


@login_required
@require_POST
def person_decides_no_more(request: HttpRequest, pk: int) -> HttpResponse:
    by, slug = administrator(request), request.POST.get("gpu_class", "")
    target = approvers.decide_no_more(pk, None if slug == ALL else slug, by=by)
    what = approvers.ALL_CLASSES if slug == ALL else slug
    messages.success(request, f"{target.name} does not decide requests for {what} any more, and is told by mail.")
    return redirect("person", pk)


def _page(
    request: HttpRequest,
    by: Actor,
    target: User,
    *,
    roles_form: RolesForm | None = None,
    class_form: ClassForm | None = None,
) -> HttpResponse:
    """With what was typed into one of its forms and refused."""
    row = person_rows([target])[0]
    given = {one.slug for one in row.decides} | ({ALL} if row.decides_all else set())
    others = queries.active_administrators().exclude(pk=target.pk).count()
    context = {
        "row": row,
        "teams": teams_of(target),
        "tokens": queries.all_tokens(owner=target.email).count(),
        "may_set_roles": policy.may_set_roles(by, target, target.roles, other_admins=others),
        "may_suspend": policy.may_suspend(by, target, other_admins=others),
        "may_make_code": policy.may_make_password_code(by, target),
        "may_drop_factor": policy.may_drop_second_factor(by, target),
        "may_change_right": deputy_policy.may_change_right(by, approver=target.pk)
        or deputy_policy.may_be_given(target.name, is_approver=row.is_approver),
        "may_take_right": deputy_policy.may_change_right(by, approver=target.pk),
        "roles_form": roles_form or RolesForm(initial={"roles": target.roles}),
        "class_form": class_form or ClassForm(given=given),
        "because_max": policy.BECAUSE_MAX,
        "all": ALL,
        "events": [shown.account_event(one) for one in queries.events_of_row(target)[:EVENTS_SHOWN]],
    }
    return render(request, "tenants/person.html", context, status=422 if roles_form or class_form else 200)
