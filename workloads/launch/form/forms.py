"""The launch form. It checks only the shape of the values; policy in the action decides whether the launch is
possible.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import Any

from django import forms

from accounts.rest.strict.forms import StrictForm
from catalog.images import image_references
from catalog.images.image_references import REFERENCE_LIMIT as IMAGE_LIMIT
from cluster.manifests.run_spec import HOME, JOB, PRIORITIES
from workloads.core.forms import VERBATIM_INPUT, AnyChoice, AnyChoices
from workloads.launch.form.choices import LaunchChoices, accepted_version
from workloads.launch.jobs.policy import SCRIPT_LIMIT
from workloads.launch.options import ENV_VALUE_LIMIT, PATH_LIMIT, REFERENCE_LIMIT, REPOSITORY_LIMIT, Options
from workloads.launch.policy import NAME_LIMIT, VOLUME_GIB_LIMIT
from workloads.launch.types import LaunchSpec
from workloads.models import Workload

KINDS = [("notebook", "Notebook"), ("job", "Job")]
USUAL = [("", "Default: interactive for notebooks, batch for jobs")]
VOLUME_GIB = 10
VISIBILITIES = [
    (Workload.Visibility.PRIVATE, "Only you"),
    (Workload.Visibility.TEAM, "All members of the team, except viewers"),
]
# For numbers without other bounds: the maximum of the database column.
MOST = 2**31 - 1


class ImageSelect(forms.Select):
    """Images that do not run on the chosen class are listed but disabled."""

    refused: Collection[str] = ()

    def create_option(self, name: str, value: Any, *rest: Any, **more: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *rest, **more)
        if value in self.refused:
            option["attrs"]["disabled"] = True
        return option


def _plain(**attrs: object) -> forms.TextInput:
    return forms.TextInput(attrs={**VERBATIM_INPUT, **attrs})


class LaunchForm(StrictForm):
    """Field names are those of `LaunchSpec` and `Options`, so that refusals by policy appear beside their field."""

    # The current terms of the chosen class.
    has_ticked = False
    asks_memory = False
    asks_level = False
    # Under "More": empty fields use the defaults of the class.
    MORE = (
        *("cpu", "memory_gib", "shared_memory_gib"),
        *("env", "secrets", "repository", "reference", "priority"),
    )

    kind = forms.ChoiceField(choices=KINDS, widget=forms.RadioSelect)
    name = forms.CharField(
        max_length=NAME_LIMIT,
        help_text=f"Lower-case letters, digits and hyphens, up to {NAME_LIMIT} characters.",
        widget=_plain(),
    )
    # The template renders the controls of these two fields: cards, and the terms of the class.
    gpu_class = AnyChoice(label="Class", widget=forms.RadioSelect)
    accept_terms = forms.CharField(required=False, max_length=60, label="Terms")
    units = forms.IntegerField(min_value=1, max_value=10_000, initial=1)
    workers = forms.IntegerField(
        required=False,
        max_value=MOST,
        label="Workers",
        help_text="Each with these units. All start together or none. Default: 1.",
    )
    run_hours = forms.IntegerField(
        required=False,
        max_value=MOST,
        label="Time limit (h)",
        help_text="From its start. Default: the class's limit, or none.",
    )
    image = AnyChoice(widget=ImageSelect)
    image_reference = forms.CharField(
        required=False,
        max_length=IMAGE_LIMIT,
        label="Custom image",
        help_text=f"Used instead of the image above. Example: {image_references.EXAMPLE_REFERENCE}.",
        widget=_plain(),
    )
    command = forms.CharField(
        required=False,
        max_length=20_000,
        label="Command",
        help_text="Example: python train.py --epochs 3. Default: the command of the image.",
        widget=_plain(),
    )
    script = forms.CharField(
        required=False,
        strip=False,
        max_length=2 * SCRIPT_LIMIT,
        label="Script",
        help_text="Used instead of a command. Runs with sh, or as its first line sets: #!/usr/bin/env python3.",
        widget=forms.Textarea(attrs={"rows": 5, **VERBATIM_INPUT}),
    )
    retries = forms.IntegerField(
        required=False,
        max_value=MOST,
        label="Retries",
        help_text="After a crash, 0 to 10. After node loss or preemption it always restarts. Default: 0.",
    )
    checkpoints = forms.BooleanField(
        required=False, label="This job uses checkpointing: it saves its state and resumes from it"
    )
    accepts_interruption = forms.BooleanField(
        required=False, label="I accept that this notebook can be interrupted at any time and then loses its memory"
    )
    priority = forms.ChoiceField(
        required=False,
        choices=[*USUAL, *((name, name.capitalize()) for name in PRIORITIES)],
        label="Priority",
        help_text="Order of your team's queued workloads. Only owners and managers may raise it above the default.",
    )
    cpu = forms.IntegerField(required=False, max_value=MOST, label="Cores")
    memory_gib = forms.IntegerField(required=False, max_value=MOST, label="Memory (GiB)")
    shared_memory_gib = forms.IntegerField(
        required=False, max_value=MOST, label="Shared memory (GiB)", help_text="Part of the memory. Default: a quarter."
    )
    # Only for classes whose devices differ in memory.
    gpu_memory_gib = forms.IntegerField(
        required=False,
        max_value=MOST,
        label="GPU memory at least (GiB)",
        help_text="Of each device. The queue counts only units: a run holds them while it waits for such a device.",
    )
    # Only for jobs on classes with a topology.
    topology_level = AnyChoice(
        required=False,
        label="All workers in one",
        help_text="A level of the class's topology. They are placed in one such domain if they fit there, otherwise in "
        "several.",
    )
    topology_required = forms.BooleanField(
        required=False, label="Required: the job is queued until all workers fit into one domain of this level"
    )
    visibility = forms.ChoiceField(
        required=False,
        choices=VISIBILITIES,
        label="Who can open it",
        help_text="A user who opens it works in your session, with its files and secrets. You can change this "
        "later. The team always sees its log.",
    )
    volume = forms.CharField(
        required=False,
        max_length=NAME_LIMIT,
        label="Volume",
        help_text="An existing volume, or the name of a new one. Empty: files are deleted when it stops.",
        widget=_plain(list="volumes"),
    )
    volume_gib = forms.IntegerField(
        required=False, min_value=1, max_value=VOLUME_GIB_LIMIT, initial=VOLUME_GIB, label="Size if new (GiB)"
    )
    volume_class = AnyChoice(
        required=False, label="Storage class if new", help_text="Shared: several runs can use the volume at a time."
    )
    mount_path = forms.CharField(
        required=False,
        max_length=PATH_LIMIT,
        label="Path",
        help_text=f"Mount path. Default: {HOME}.",
        widget=_plain(placeholder=HOME),
    )
    env = forms.CharField(
        required=False,
        strip=False,
        max_length=50 * ENV_VALUE_LIMIT,
        label="Variables",
        help_text="One NAME=value per line. All team members can read them.",
        widget=forms.Textarea(
            attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}
        ),
    )
    secrets = AnyChoices(
        required=False,
        label="Secrets",
        help_text="Each is set as a variable with its name. Programs in the run can read the value.",
        widget=forms.CheckboxSelectMultiple,
    )
    repository = forms.CharField(
        required=False,
        max_length=REPOSITORY_LIMIT,
        label="Repository",
        help_text="Cloned into your files before the first start. Example: https://github.com/owner/project.",
        widget=_plain(inputmode="url"),
    )
    reference = forms.CharField(
        required=False,
        max_length=REFERENCE_LIMIT,
        label="Branch or tag",
        help_text="Default: its default branch.",
        widget=_plain(),
    )

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        if self.so_far("image_reference"):
            self.fields["image"].required = False

    def add_error(self, field: str | None, error: Any) -> None:
        """Shows errors about the image beside the field that was used."""
        is_own = field == "image" and bool(self.so_far("image_reference"))
        super().add_error("image_reference" if is_own else field, error)

    def so_far(self, name: str) -> str:
        """Returns the entered or the initial value. Called before `offer`, because a BoundField would keep the initial
        value.
        """
        value = self.data.get(name) if self.is_bound and not self.fields[name].disabled else self.initial.get(name)
        return str(value or "")

    def offer(self, offer: LaunchChoices) -> None:
        """Sets the choices of the fields; called only when the form is shown."""
        if image_references.is_below(str(self.initial.get("image", "")), offer.prefixes):
            self.initial["image_reference"] = self.initial["image"]
        image = self.fields["image"]
        assert isinstance(image, AnyChoice)
        assert isinstance(image.widget, ImageSelect)
        image.widget.refused = {one.name for one in offer.images if one.problem}
        has_error = self.is_bound and "image" in self.errors
        image.widget.attrs["aria-describedby"] = "id_image_error image-notes" if has_error else "image-notes"
        storage = self.fields["volume_class"]
        assert isinstance(storage, AnyChoice)
        storage.choices = [(one.name, f"{one.name}{', shared' * one.is_shared}") for one in offer.storage_classes]
        order = sorted(KINDS, key=lambda kind: kind[0] != offer.kind)
        of_kind = {kind: [(one.name, one.title) for one in offer.images if one.kind == kind] for kind, _ in KINDS}
        image.choices = [(f"{word}s", of_kind[kind]) for kind, word in order if of_kind[kind]]
        self.initial.update(kind=offer.kind, gpu_class=offer.chosen)
        self._offer_memory(offer)
        self._offer_levels(offer)
        self.has_ticked = offer.terms is not None and self.so_far("accept_terms") == offer.terms.value
        fits = [one.name for one in offer.images if one.kind == offer.kind and not one.problem]
        if self.initial.get("image") not in fits:
            # Selects the image that a browser would select, since disabled options are not sent.
            self.initial["image"] = next(iter(fits), "")

    def _offer_memory(self, offer: LaunchChoices) -> None:
        """Another class has other devices: what was entered for one is not kept for a class that cannot take it."""
        chosen, field = offer.gpu_class, "gpu_memory_gib"
        keeps = chosen is not None and chosen.may_ask_memory and bool(self.so_far(field))
        is_refused = self.is_bound and field in self.errors
        self.asks_memory = is_refused or keeps or bool(chosen and chosen.gpu_memory)
        if not self.asks_memory:
            self.initial.pop(field, None)

    def _offer_levels(self, offer: LaunchChoices) -> None:
        """A level that the chosen class lacks is not kept; if its levels are unknown, what was entered is."""
        field, asked = self.fields["topology_level"], self.so_far("topology_level")
        levels = offer.levels if offer.levels is not None else (asked,) if asked else ()
        is_refused = self.is_bound and "topology_level" in self.errors
        assert isinstance(field, AnyChoice)
        field.choices = [("", "Anywhere in the class"), *((level, level) for level in levels)]
        self.asks_level = bool(levels) or is_refused
        if asked not in levels:
            for name in ("topology_level", "topology_required"):
                self.initial.pop(name, None)

    def offer_secrets(self, names: list[str]) -> None:
        """Offers the team's current secrets; deleted secrets are not selected again."""
        field = self.fields["secrets"]
        assert isinstance(field, AnyChoices)
        field.choices = [(name, name) for name in names]
        self.initial["secrets"] = [name for name in self.initial.get("secrets", []) if name in names]

    @property
    def is_more_open(self) -> bool:
        """Returns whether a field under "More" was filled in or refused."""
        values = {name: self[name].value() for name in self.MORE}
        has_value = any(str(value) != str(self.fields[name].initial or "") for name, value in values.items() if value)
        return has_value or (self.is_bound and any(name in self.errors for name in self.MORE))

    @property
    def is_job(self) -> bool:
        """Returns whether this is a job, or has an option of jobs only, which must be visible so that the user can
        remove it.
        """
        of_jobs = (self[name] for name in ("command", "script", "workers", "retries"))
        return self["kind"].value() == JOB or any(one.value() or one.errors for one in of_jobs)

    def as_typed(self) -> LaunchForm:
        """Returns the form as if the shown values were submitted now. Used by the preview."""
        if self.is_bound:
            return self
        values = {name: self[name].value() for name in self.fields}
        sent = {name: "" if value is None else value for name, value in values.items()}
        return type(self)(sent, initial=self.initial)

    def clean_command(self) -> tuple[str, ...]:
        try:
            return tuple(shlex.split(self.cleaned_data["command"]))
        except ValueError as error:
            raise forms.ValidationError("A quotation mark is not closed.") from error

    def clean_script(self) -> str:
        """Browsers send CR and LF for the end of a line."""
        typed = str(self.cleaned_data["script"]).replace("\r\n", "\n")
        return typed if typed.strip() else ""

    def clean_secrets(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.cleaned_data["secrets"])))

    def clean_env(self) -> tuple[tuple[str, str], ...]:
        found: dict[str, str] = {}
        for number, line in enumerate(self.cleaned_data["env"].replace("\r\n", "\n").split("\n"), start=1):
            if not line.strip():
                continue
            name, equals, value = line.partition("=")
            name = name.strip()
            if not equals:
                raise forms.ValidationError(f"Line {number} has no '='. Enter NAME=value.")
            if name in found:
                raise forms.ValidationError(f"{name[:40]} is set twice. Remove one.")
            found[name] = value
        return tuple(sorted(found.items()))

    def options(self) -> Options:
        names = (
            *("cpu", "memory_gib", "shared_memory_gib", "mount_path"),
            *("env", "secrets", "repository", "reference", "run_hours"),
            *("workers", "script", "priority", "retries", "checkpoints", "gpu_memory_gib"),
            *("accepts_interruption", "topology_level", "topology_required"),
        )
        return Options(**{name: self.cleaned_data[name] for name in names})

    def wanted(self) -> LaunchSpec:
        data = self.cleaned_data
        return LaunchSpec(
            name=data["name"],
            kind=data["kind"],
            gpu_class=data["gpu_class"],
            units=data["units"],
            image=data["image_reference"] or data["image"],
            command=data["command"],
            volume=data["volume"],
            volume_gib=data["volume_gib"] or VOLUME_GIB,
            volume_class=data["volume_class"],
            accept_terms=accepted_version(data["accept_terms"], data["gpu_class"]),
            visibility="" if data["kind"] == JOB else data.get("visibility", ""),
            options=self.options(),
        )


class ChangeForm(LaunchForm):
    """For an existing workload: its name and kind are fixed, whatever is sent."""

    sent_along = frozenset({"csrfmiddlewaretoken", "later"})
    name = forms.CharField(disabled=True)
    kind = forms.ChoiceField(choices=KINDS, disabled=True)
    # The person who launched it chooses this on its page.
    visibility = None  # type: ignore[assignment]
