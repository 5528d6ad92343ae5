"""The page Notices: the list, what was read, the preferences."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from accounts.notices import actions, queries
from accounts.notices.forms import PreferencesForm, ReadForm
from accounts.rest.paging import page_of
from portal.core.errors import NOT_FOUND, Refused

UNREAD = "unread"


@login_required
@require_GET
def notices(request: HttpRequest) -> HttpResponse:
    return _page(request, actor(request))


@login_required
@require_POST
def notices_read(request: HttpRequest) -> HttpResponse:
    """The parameters are those of the page that it returns to."""
    form = ReadForm(request.POST)
    if not form.is_valid():
        raise Refused(NOT_FOUND)
    chosen = form.cleaned_data["notice"]
    actions.mark_read(actor(request).person.pk, None if chosen is None else [chosen])
    return redirect(f"{reverse('notices')}?{request.GET.urlencode()}")


@login_required
@require_POST
def notice_preferences(request: HttpRequest) -> HttpResponse:
    by = actor(request)
    form = PreferencesForm(request.POST, preferences=queries.preferences_of(by.person.pk))
    if not form.is_valid():
        return _page(request, by, form=form)
    actions.set_preferences(form.cleaned_data, by=by)
    messages.success(request, "Preferences saved.")
    return redirect("notices")


def _page(request: HttpRequest, by: Actor, *, form: PreferencesForm | None = None) -> HttpResponse:
    is_unread = request.GET.get("show") == UNREAD
    found = queries.notices_of(by.person.pk, only_unread=is_unread)
    page = page_of(found, keys=queries.KEYS, cursor=request.GET.get("cursor"))
    preferences = queries.preferences_of(by.person.pk)
    context = {
        "notices": page.items,
        "next_cursor": page.next_cursor,
        "is_unread": is_unread,
        "form": form or PreferencesForm(None, preferences=preferences),
        "fixed": [one for one in preferences if not one.may_change],
    }
    return render(request, "accounts/notices/notices.html", context, status=422 if form else 200)
