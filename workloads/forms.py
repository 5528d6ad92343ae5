"""The launch form: shapes only; what is possible is said by policy, in the action."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import Any

from django import forms

from workloads.policy import NAME_LIMIT, VOLUME_GIB_LIMIT, Wanted
from workloads.queries.offers import Offer, ticked

KINDS = [("notebook", "Notebook"), ("job", "Job")]


class AnyChoice(forms.ChoiceField):
    """Takes any text: the action knows what is possible, and reading all choices only to find one costs time."""

    def valid_value(self, value: object) -> bool:
        return True


class ImageSelect(forms.Select):
    """Those that do not run on the chosen class are there, and cannot be chosen."""

    refused: Collection[str] = ()

    def create_option(self, name: str, value: Any, *rest: Any, **more: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *rest, **more)
        if value in self.refused:
            option["attrs"]["disabled"] = True
        return option


class LaunchForm(forms.Form):
    kind = forms.ChoiceField(choices=KINDS, widget=forms.RadioSelect)
    name = forms.CharField(
        max_length=NAME_LIMIT,
        help_text=f"Lower-case letters, digits and hyphens, up to {NAME_LIMIT} characters.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    gpu_class = AnyChoice(label="Class", widget=forms.RadioSelect)
    units = forms.IntegerField(min_value=1, max_value=10_000, initial=1)
    image = AnyChoice(widget=ImageSelect)
    # The template writes the control: its text and value are the class's.
    accept_terms = forms.CharField(required=False, max_length=60, label="Terms")
    command = forms.CharField(
        required=False,
        max_length=20_000,
        label="Command",
        help_text="Jobs only, as in a shell: python train.py --epochs 3. Empty: what the image runs by itself.",
    )
    volume = forms.CharField(
        required=False,
        max_length=NAME_LIMIT,
        label="Volume",
        help_text="Files under /home/work stay on it. A new name makes a new volume; empty: files end with the run.",
    )
    volume_gib = forms.IntegerField(
        required=False, min_value=1, max_value=VOLUME_GIB_LIMIT, initial=10, label="Size of a new volume (GiB)"
    )

    def offer(self, offer: Offer) -> None:
        """What to choose from; read only when the form is shown."""
        gpu_class, image = self.fields["gpu_class"], self.fields["image"]
        assert isinstance(gpu_class, AnyChoice)
        assert isinstance(image, AnyChoice)
        assert isinstance(image.widget, ImageSelect)
        gpu_class.choices = [(one.slug, one.label) for one in offer.classes]
        image.widget.refused = {one.name for one in offer.images if one.problem}
        has_error = self.is_bound and "image" in self.errors
        image.widget.attrs["aria-describedby"] = "id_image_error image-notes" if has_error else "image-notes"
        order = sorted(KINDS, key=lambda kind: kind[0] != offer.kind)
        of_kind = {kind: [(one.name, one.title) for one in offer.images if one.kind == kind] for kind, _ in KINDS}
        image.choices = [(f"{word}s", of_kind[kind]) for kind, word in order if of_kind[kind]]
        self.initial.update(kind=offer.kind, gpu_class=offer.chosen)
        if self.initial.get("image") in image.widget.refused:
            del self.initial["image"]  # a browser does not send an option that is off

    def clean_command(self) -> tuple[str, ...]:
        try:
            return tuple(shlex.split(self.cleaned_data["command"]))
        except ValueError as error:
            raise forms.ValidationError("A quotation mark is not closed.") from error

    def wanted(self) -> Wanted:
        data = self.cleaned_data
        return Wanted(
            name=data["name"],
            kind=data["kind"],
            gpu_class=data["gpu_class"],
            units=data["units"],
            image=data["image"],
            command=data["command"],
            volume=data["volume"],
            volume_gib=data["volume_gib"] or 10,
            accept_terms=ticked(data["accept_terms"], data["gpu_class"]),
        )
