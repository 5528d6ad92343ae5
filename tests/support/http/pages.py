"""Reads pages as text."""

from __future__ import annotations

from typing import Any

from accounts.core.actor import Actor
from accounts.models import User
from tenants.models import TeamRequest
from tenants.onboarding.team_requests import actions as team_request_actions


def page(user: User) -> Actor:
    return Actor(user=user, via="page")


def ask(by: User, **typed: Any) -> TeamRequest:
    values = {"name": "Robots", "purpose": "Grasping from video.", "bundle": "Training", **typed}
    return team_request_actions.request_team(by=page(by), **values)
