"""The questions of "Help me choose". The answers are in the URL, so that the link can be sent to a colleague."""

from __future__ import annotations

from math import ceil
from typing import Any

from django import forms
from django.http import QueryDict

from catalog.guide.requirements import (
    BATCH,
    DECODE,
    ENCODE,
    INTERACTIVE,
    INTERCONNECT,
    LATENCY,
    SERVING,
    VENDORS,
    Requirements,
)

MIB = 1024**2
# Users mean the GB in the name of a GPU: 10 GB are 9,537 MiB.
MEMORY = {"10": "up to 10 GB", "40": "up to 40 GB", "80": "up to 80 GB", "more": "more", "unknown": "unknown"}
# More than a GPU sold as 80 GB has.
MORE_MIB = 80 * 1024
SEVERAL = "several"
DEFAULTS = {
    "mem": "unknown",
    "iso": "own",
    "how": INTERACTIVE,
    "hours": "hours",
    "cards": "one",
    "sensitive": "no",
    "small": "no",
    "vendor": "any",
    "resume": "unknown",
    "video": "no",
    "prefer": "price",
}
# Answered by few; the page shows them only on request, or if one has an answer.
OPTIONAL = ("hours", "resume", "sensitive", "prefer", "video", "small", "vendor", "fp8", "dra")


class RequirementsForm(forms.Form):
    mem = forms.ChoiceField(
        label="How much GPU memory does it need at its peak?", choices=list(MEMORY.items()), widget=forms.RadioSelect
    )
    mem_gib = forms.DecimalField(
        label="Or enter the peak, in GiB per GPU",
        min_value=0,
        max_value=10_000,
        max_digits=8,
        decimal_places=3,
        required=False,
        widget=forms.TextInput(attrs={"inputmode": "decimal"}),
    )
    iso = forms.ChoiceField(
        label="May other pods slow it down or, at worst, terminate it?",
        choices=[
            ("own", "no, it needs isolation"),
            ("alone", "no, and nobody else on the GPU"),
            ("shared", "yes, sharing is acceptable"),
        ],
        widget=forms.RadioSelect,
    )
    how = forms.ChoiceField(
        label="What kind of workload is it?",
        choices=[
            (INTERACTIVE, "interactive, with pauses"),
            (BATCH, "batch, hours"),
            (SEVERAL, "batch, several GPUs"),
            (SERVING, "serving, steady load"),
        ],
        widget=forms.RadioSelect,
    )
    hours = forms.ChoiceField(
        label="How long does one run take?",
        choices=[("hours", "up to a few hours"), ("days", "a day or longer")],
        widget=forms.RadioSelect,
    )
    cards = forms.ChoiceField(
        label="How many GPUs, on how many nodes?",
        choices=[("one", "one GPU"), ("node", "several on one node"), ("nodes", "several on several nodes")],
        widget=forms.RadioSelect,
    )
    units = forms.IntegerField(
        label="Number of GPUs in total",
        min_value=2,
        max_value=4096,
        required=False,
        widget=forms.TextInput(attrs={"inputmode": "numeric"}),
    )
    sensitive = forms.ChoiceField(
        label="Is it sensitive to latency or to the GPU interconnect?",
        choices=[
            ("no", "neither"),
            (LATENCY, "latency: it must respond in time"),
            (INTERCONNECT, "interconnect: its GPUs exchange much data"),
        ],
        widget=forms.RadioSelect,
    )
    small = forms.ChoiceField(
        label="Is it many small, steady CUDA processes of one kind?",
        choices=[("no", "no"), ("yes", "yes")],
        widget=forms.RadioSelect,
    )
    resume = forms.ChoiceField(
        label="Can it resume from a checkpoint after an interruption?",
        choices=[("unknown", "unknown"), ("yes", "yes"), ("no", "no, it starts from the beginning")],
        widget=forms.RadioSelect,
    )
    video = forms.ChoiceField(
        label="Does it decode or encode video on the GPU?",
        choices=[("no", "no"), (DECODE, "decodes (NVDEC)"), (ENCODE, "encodes or transcodes (NVENC)")],
        widget=forms.RadioSelect,
    )
    prefer = forms.ChoiceField(
        label="Which matters more, the price or an early start?",
        choices=[("price", "price"), ("time", "early start")],
        widget=forms.RadioSelect,
    )
    vendor = forms.ChoiceField(
        label="Which vendor?", choices=[("any", "any"), *VENDORS.items()], widget=forms.RadioSelect
    )
    fp8 = forms.BooleanField(label="supports FP8", required=False)
    dra = forms.BooleanField(label="selected by attributes (DRA)", required=False)

    @classmethod
    def asked(cls, query: QueryDict) -> RequirementsForm:
        """Returns a form bound to the query string; unanswered questions have the default for an unknown workload."""
        data: dict[str, Any] = {**DEFAULTS, **query.dict()}
        if data["how"] == SEVERAL and data["cards"] == "one":
            data["cards"] = "node"
        # A notebook runs on one node.
        if data["how"] == INTERACTIVE and data["cards"] == "nodes":
            data["how"] = SEVERAL
        return cls(data)

    @property
    def has_optional_answers(self) -> bool:
        return any(self.data.get(name, "") != DEFAULTS.get(name, "") for name in OPTIONAL)

    def needs(self) -> Requirements:
        """Only for a valid form."""
        asked = self.cleaned_data
        cards = 1 if asked["cards"] == "one" else asked["units"] or 2
        memory, or_more = self._memory()
        return Requirements(
            memory_mib=memory,
            or_more=or_more,
            own_part=asked["iso"] != "shared",
            alone=asked["iso"] == "alone",
            work=BATCH if asked["how"] == SEVERAL else asked["how"],
            long=asked["hours"] == "days",
            cards=cards,
            several_nodes=asked["cards"] == "nodes",
            sensitive="" if asked["sensitive"] == "no" else asked["sensitive"],
            small_processes=asked["small"] == "yes",
            fp8=asked["fp8"],
            vendor="" if asked["vendor"] == "any" else asked["vendor"],
            dra=asked["dra"],
            resumes={"yes": True, "no": False}.get(asked["resume"]),
            video="" if asked["video"] == "no" else asked["video"],
            soon=asked["prefer"] == "time",
        )

    def _memory(self) -> tuple[int | None, bool]:
        if self.cleaned_data["mem_gib"]:
            return ceil(self.cleaned_data["mem_gib"] * 1024), False
        answer = self.cleaned_data["mem"]
        if answer == "more":
            return MORE_MIB, True
        return (None, False) if answer == "unknown" else (int(answer) * 10**9 // MIB + 1, False)
