"""The button that begins a trial."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from accounts.core.request_actor import actor
from tenants.onboarding.trials import actions as trial_actions


@login_required
@require_POST
def trial_start(request: HttpRequest) -> HttpResponse:
    tenant = trial_actions.begin_trial(by=actor(request))
    messages.success(request, "Your trial has started. The setup takes a few seconds.")
    return redirect("tenant-home", tenant.slug)
