"""Suggested actions of a workload as JSON."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers

from workloads.advice.advice import NEVER, NOT_YET, OVER, STUCK, Advice
from workloads.advice.shown import advice_view


class NextStepSerializer(serializers.Serializer[Any]):
    verb = serializers.CharField(help_text="Stable code: smaller_slice, fewer_units, stop_other, wait, …")
    title = serializers.CharField()
    why = serializers.CharField(help_text="Why it helps, with numbers.")
    url = serializers.CharField(allow_blank=True, help_text="The page, filled in; empty: no page to open.")


class AdviceSerializer(serializers.Serializer[Any]):
    verdict = serializers.ChoiceField(
        choices=["", NOT_YET, NEVER, STUCK, OVER],
        help_text="Whether waiting is enough; empty: no action is needed.",
    )
    next_steps = NextStepSerializer(many=True, help_text="Suggested actions for the caller, best first.")
    findings = serializers.ListField(child=serializers.CharField(), help_text="What else is known about the class.")


def advice_body(advice: Advice | None, tenant: str) -> dict[str, Any]:
    if advice is None:
        return {"verdict": "", "next_steps": [], "findings": []}
    found = advice_view("", advice, tenant)
    steps = [
        {
            "verb": one.verb,
            "title": one.label,
            "why": one.why,
            "url": settings.PORTAL_URL + one.href if one.href else "",
        }
        for one in found.steps
    ]
    return {"verdict": found.verdict, "next_steps": steps, "findings": list(found.findings)}
