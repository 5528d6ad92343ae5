"""/styleguide: every component in every state, for developers of pages. Staff only; others get 404."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from portal.core.errors import Refusal
from portal.ui.statuses import STATUSES

NO_GRANT = Refusal("exceeds_grant", "Your team has no quota for this class and borrowing is off. Request quota first.")


class SampleForm(forms.Form):
    """One field of each kind; it is never submitted."""

    name = forms.CharField(max_length=40, help_text="Lower-case letters, digits and hyphens, up to 40 characters.")
    gpu_class = forms.ChoiceField(
        label="Class", choices=[("a100", "A100 SXM4 80GB"), ("mig", "A100 SXM4 80GB · MIG 1g.10gb")]
    )
    kind = forms.ChoiceField(
        choices=[("notebook", "Notebook"), ("job", "Job")], widget=forms.RadioSelect, initial="notebook"
    )
    until = forms.DateField(widget=forms.DateInput(attrs={"type": "date"}))
    reason = forms.CharField(widget=forms.Textarea(attrs={"rows": 2}), required=False)
    scopes = forms.MultipleChoiceField(
        choices=[("read", "read"), ("launch", "launch and stop")], widget=forms.CheckboxSelectMultiple
    )
    agree = forms.BooleanField(label="Overcommit")


@dataclass(frozen=True)
class SampleStep:
    title: str
    state: str
    note: str = ""
    at: Any = None
    problem: str = ""
    remedy: str = ""
    raw: str = ""
    raw_from: str = ""


@dataclass(frozen=True)
class SampleLine:
    sign: str
    text: str


@dataclass(frozen=True)
class SampleObject:
    kind: str
    name: str
    result: str
    detail: str = ""
    label: str = ""
    lines: tuple[SampleLine, ...] = ()
    raw: str = ""
    at: Any = None


@dataclass(frozen=True)
class SampleItem:
    term: str
    value: str
    code: bool = False


@dataclass(frozen=True)
class SampleEvent:
    at: Any
    who: str
    sentence: str
    name: str = ""
    href: str = ""


@dataclass(frozen=True)
class SampleBar:
    title: str
    granted: int
    used: int
    borrowed: int
    queued: int
    unit: str


BARS = [
    SampleBar("fully used, others queued", 4, 4, 0, 4, "GPU"),
    SampleBar("half used", 6, 3, 0, 0, "slice"),
    SampleBar("nothing running, scheduling paused", 2, 0, 0, 2, "GPU"),
    SampleBar("borrowed beyond the quota", 4, 6, 2, 0, "share"),
    SampleBar("more in use than granted", 2, 4, 0, 1, "GPU"),
    SampleBar("no quota", 0, 0, 0, 0, "GPU"),
    SampleBar("16 cells", 12, 10, 0, 4, "GPU"),
    SampleBar("continuous above 16", 48, 31, 0, 9, "GPU"),
]


@dataclass(frozen=True)
class SamplePromiseStep:
    at: datetime
    units: int


@dataclass(frozen=True)
class SamplePromises:
    before: tuple[SamplePromiseStep, ...]
    after: tuple[SamplePromiseStep, ...]
    limit: int
    start: datetime
    end: datetime
    unit: str = "GPU"


@login_required
def styleguide(request: HttpRequest) -> HttpResponse:
    if not request.user.is_staff:
        raise Http404
    return render(request, "portal/ui/styleguide.html", sample_context())


def sample_context() -> dict[str, Any]:
    """Plausible sample data; nothing here comes from the database."""
    now = timezone.now()
    wrong = SampleForm({"name": "My Lab", "gpu_class": "a100", "kind": "job", "scopes": ["read"]})
    wrong.add_error("name", "Use lower-case letters, digits and hyphens; 'My Lab' is not valid.")
    wrong.add_error(None, "6 GPUs requested, at most 4 are possible (4 granted, borrowing off). Request fewer.")
    return {
        "statuses": list(STATUSES),
        "bars": BARS,
        "curve": promises(now),
        "form": SampleForm(auto_id="clean-%s"),
        "wrong_form": wrong,
        "refusal": NO_GRANT,
        "steps": steps(now),
        "objects": objects(now),
        "definitions": [
            SampleItem("Class", "A100 SXM4 80GB, 1 GPU"),
            SampleItem("Image", "lab/pytorch:2.9-cuda12", code=True),
            SampleItem("Size", "12 cores, 96 GiB"),
        ],
        "events": [
            SampleEvent(now - timedelta(minutes=6), "Bob", "launched", "depth-probe", "#events"),
            SampleEvent(now - timedelta(minutes=9), "", "Blocked, image not found:", "retina-seg", "#events"),
            SampleEvent(now - timedelta(days=1, hours=2), "Dana", "approved request", "#97", "#events"),
        ],
        "moments": [now - timedelta(seconds=4), now - timedelta(minutes=38), now + timedelta(hours=5)],
        "now": now,
        "soon": now + timedelta(minutes=4, seconds=10),
        "old": now - timedelta(minutes=7),
        "call": 'curl -X POST "$PORTAL/api/v1/workloads/retina-seg/runs" \\\n  -H "Authorization: Bearer $TOKEN"',
        "token": "gpt_3f9c_this-is-a-sample-and-opens-nothing",
    }


def promises(now: datetime) -> SamplePromises:
    first, second = now + timedelta(days=17), now + timedelta(days=44)
    before = (SamplePromiseStep(now, 32), SamplePromiseStep(first, 28), SamplePromiseStep(second, 24))
    asked = now + timedelta(days=5)
    after = (
        SamplePromiseStep(now, 32),
        SamplePromiseStep(asked, 36),
        SamplePromiseStep(first, 32),
        SamplePromiseStep(second, 28),
    )
    return SamplePromises(before, after, 32, now, now + timedelta(days=74))


def steps(now: datetime) -> list[SampleStep]:
    asked = now - timedelta(minutes=40)
    return [
        SampleStep("Requested", "done", "by Alice", asked),
        SampleStep("Queued for 19 min", "done", "started as 2nd in the team's queue", asked + timedelta(minutes=19)),
        SampleStep("Node assigned", "done", "a100-03, 1 of 8 GPUs", asked + timedelta(minutes=19, seconds=2)),
        SampleStep("Storage", "busy", "attaching retina-data, 200 GiB", asked + timedelta(minutes=20)),
        SampleStep(
            "Image",
            "stuck",
            "5 attempts in 9 min",
            asked + timedelta(minutes=21),
            problem="The registry has lab/pytorch, but not the tag 2.9-cuda13.",
            remedy="Choose another image, or push this tag.",
            raw='Warning  Failed  5 times\nFailed to pull image "lab/pytorch:2.9-cuda13": not found',
            raw_from="kubelet on a100-03",
        ),
        SampleStep("Starting", "next"),
        SampleStep("Ready", "next"),
    ]


def objects(now: datetime) -> list[SampleObject]:
    changed = (
        SampleLine(" ", "flavor a100-80gb-7f3c, nvidia.com/gpu"),
        SampleLine("-", "nominalQuota: 12"),
        SampleLine("+", "nominalQuota: 16"),
    )
    return [
        SampleObject("ClusterQueue", "llm-inference", "applied", label="Dry run accepted", lines=changed),
        SampleObject("LimitRange", "llm-inference/gpu-portal", "applied", at=now - timedelta(minutes=3)),
        SampleObject(
            "ResourceQuota",
            "llm-inference/gpu-portal",
            "drifted",
            "kubectl-edit changed spec.hard; drift repaired.",
            lines=(SampleLine("-", 'requests.nvidia.com/gpu: "99"'), SampleLine("+", 'requests.nvidia.com/gpu: "36"')),
        ),
        SampleObject(
            "NetworkPolicy",
            "llm-inference/from-gateway",
            "refused",
            "The API server rejected it; next retry in 5 min.",
            raw="403 Forbidden: admission webhook denied the request",
        ),
        SampleObject(
            "Namespace",
            "llm-inference",
            "foreign",
            "A namespace with this name exists and is not managed by the portal. It was not changed.",
        ),
        SampleObject("LocalQueue", "llm-inference/gpu-portal", "unknown", "The cluster has not been read yet."),
    ]
