"""Messages of the API server, and what happened to an object, as sentences for users."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.apply import messages


@pytest.mark.parametrize(
    ("code", "text", "said"),
    [
        (
            "Forbidden",
            'resourcequotas is forbidden: User "system:serviceaccount:gpu-portal:worker" cannot create resource '
            '"resourcequotas" in API group "" in the namespace "team-a"',
            "The portal is not allowed to create resourcequotas here; an operator must grant this permission.",
        ),
        (
            "Invalid",
            "namespaces \"x\" is forbidden: ValidatingAdmissionPolicy 'gpu-portal-worker' with binding "
            "'gpu-portal-worker' denied request: gpu-portal fence: only namespaces with the portal's label",
            "The cluster's admission policy for the portal rejected this: only namespaces with the portal's label.",
        ),
        (
            "Forbidden",
            'pods "x" is forbidden: exceeded quota: gpu-portal, requested: pods=1, used: pods=3, limited: pods=3',
            "The ResourceQuota gpu-portal of the namespace is exceeded: requested: pods=1, used: pods=3, limited: "
            "pods=3.",
        ),
        (
            "Invalid",
            'ResourceQuota "gpu-portal" is invalid: spec.hard[pods]: Invalid value: "many": must be a number',
            'The cluster rejected an invalid value: spec.hard[pods]: Invalid value: "many": must be a number.',
        ),
        (
            "BadRequest",
            'admission webhook "vclusterqueue.kb.io" denied the request: spec.cohort: too long',
            "The admission webhook vclusterqueue.kb.io rejected this: spec.cohort: too long.",
        ),
        ("NotFound", 'namespaces "team-a" not found', "Namespace team-a does not exist."),
        ("Forbidden", "something new", "The cluster rejected the object. The request is forbidden."),
        ("Teapot", "{0} %s", "The cluster rejected the object."),
    ],
)
def test_refusals_are_made_plain(code: str, text: str, said: str) -> None:
    assert messages.refusal_sentence(code, text) == said


@pytest.mark.parametrize(
    ("found", "drifted", "repaired"),
    [
        (
            {"fields": ["spec.hard.pods"], "manager": "kubectl-edit", "since": "2026-11-21T21:58:03Z"},
            "Changed outside of the portal by kubectl-edit since 21 Nov 21:58 UTC: spec.hard.pods. The drift will be "
            "repaired.",
            "Drift repaired: spec.hard.pods had been changed outside of the portal by kubectl-edit since 21 Nov "
            "21:58 UTC.",
        ),
        (
            {"gone": True, "fields": [], "manager": "", "since": "2026-11-01T01:02:03+00:00"},
            "Deleted outside of the portal at 1 Nov 01:02 UTC. It will be recreated.",
            "Drift repaired: recreated after it was deleted outside of the portal at 1 Nov 01:02 UTC.",
        ),
        (
            {"fields": list("abcdefg")},
            "Changed outside of the portal: a, b, c, d, e and 2 more. The drift will be repaired.",
            "Drift repaired: a, b, c, d, e and 2 more had been changed outside of the portal.",
        ),
        (
            {"missing": True},
            "Changed outside of the portal: fields. The drift will be repaired.",
            "Drift repaired: fields had been changed outside of the portal.",
        ),
    ],
)
def test_a_difference_is_told_before_and_after(found: dict[str, Any], drifted: str, repaired: str) -> None:
    assert messages.drift_sentence(found) == drifted
    assert messages.repair_sentence(found) == repaired
