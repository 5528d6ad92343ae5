"""The launch form: shapes only; what is possible is said by policy, in the action."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from django import forms

from catalog.models import GpuClass, Image
from workloads.policy import NAME_LIMIT, VOLUME_GIB_LIMIT, Wanted


class AnyChoice(forms.ChoiceField):
    """Takes any text: the action knows what is possible, and reading all choices only to find one costs time."""

    def valid_value(self, value: object) -> bool:
        return True


class LaunchForm(forms.Form):
    kind = forms.ChoiceField(
        choices=[("notebook", "Notebook"), ("job", "Job")], widget=forms.RadioSelect, initial="notebook"
    )
    name = forms.CharField(
        max_length=NAME_LIMIT,
        help_text=f"Lower-case letters, digits and hyphens, up to {NAME_LIMIT} characters.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    gpu_class = AnyChoice(label="Class", widget=forms.RadioSelect)
    units = forms.IntegerField(min_value=1, max_value=10_000, initial=1)
    image = AnyChoice()
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

    def offer(self, classes: Sequence[GpuClass], images: Sequence[Image]) -> None:
        """What to choose from; read only when the form is shown."""
        gpu_class, image = self.fields["gpu_class"], self.fields["image"]
        assert isinstance(gpu_class, AnyChoice)
        assert isinstance(image, AnyChoice)
        gpu_class.choices = [(one.slug, one.name) for one in classes]
        image.choices = [(one.name, f"{one.name} ({one.kind})") for one in images]
        if classes and not self.initial.get("gpu_class"):
            self.initial["gpu_class"] = classes[0].slug

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
        )
