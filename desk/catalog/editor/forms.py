"""The form of a class, in sections, and of an image. They check types; the actions refuse the rest beside the field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms import BoundField

from accounts.rest.strict.forms import StrictForm
from catalog.classes.actions import EDITABLE_FIELDS, IDENTITY_FIELDS
from catalog.images.compatibility import VENDORS
from catalog.models import GpuClass, Image
from desk.catalog.editor.actions import IMAGE_FIELDS
from desk.catalog.editor.rows import BLANK_ROWS, Column, LabelsField, TolerationsField

ROW_FIELDS: dict[str, type[LabelsField] | type[TolerationsField]] = {
    "node_labels": LabelsField,
    "tolerations": TolerationsField,
}
# Title, note, the kind of class that alone has it ("": every class), fields.
SECTIONS = (
    ("Name", "", "", ("slug", "name", "summary", "eligibility", "visibility", "kinds", "starter")),
    ("Sharing", "How a workload gets one unit.", "", ("interface", "sharing", "replicas")),
    ("Hardware", "", "gpu", ("vendor", "product", "resource", "partition", "memory_mib")),
    ("DRA", "What a claim requests.", "dra", ("device_class", "device_selector")),
    (
        "Nodes",
        "Nodes with all of these labels; taints that workloads tolerate; how many units an autoscaler may provide.",
        "node",
        ("node_labels", "tolerations", "topology", "max_units", "node_minutes"),
    ),
    ("Interconnect", "", "gpu", ("interconnect", "interconnect_note", "interconnect_on")),
    ("Size of a unit", "", "", ("units_per_workload", "cpu_per_unit", "memory_gib_per_unit")),
    (
        "Quota and price",
        "",
        "",
        ("promise_limit", "borrowing_limit", "damping_minutes", "weight", "price_per_unit_hour"),
    ),
    (
        "Limits of runs",
        "",
        "node",
        (
            "run_hours_limit",
            "idle_stop_minutes",
            "idle_action",
            "idle_minutes",
            "production_limit",
            "log_retention_days",
        ),
    ),
    ("Terms", "A new text needs a higher version.", "", ("terms_version", "terms")),
)
# Of several lines, stored as they are.
TEXTS = ("device_selector", "terms")
SUGGESTED = ("vendor", "product", "resource", "partition", "device_class")
_WIDGETS = {
    "device_selector": forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    "terms": forms.Textarea(attrs={"rows": 5}),
    "interconnect_on": forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    **{name: forms.TextInput(attrs={"list": f"known-{name}", "autocomplete": "off"}) for name in SUGGESTED},
}


@dataclass(frozen=True)
class FieldRows:
    """A field made of rows: `lines` have one cell for each column, as (column, value)."""

    field: BoundField
    lines: list[list[tuple[Column, str]]]


@dataclass(frozen=True)
class FormSection:
    title: str
    note: str
    of: str
    fields: list[BoundField]
    rows: list[FieldRows]


class ClassEditorForm(StrictForm, forms.ModelForm):
    """`instance`: the class to edit, or a class to copy for a new one (`is_new`). `seen`: what the page showed; if the
    class has changed since, nothing is written.
    """

    sent_along = StrictForm.sent_along | {"do", "seen"}

    class Meta:
        model = GpuClass
        fields = ("slug", *(name for name in EDITABLE_FIELDS if name not in ROW_FIELDS))
        widgets = _WIDGETS
        labels = {
            "memory_mib": "GPU memory (MiB)",
            "cpu_per_unit": "Cores per unit",
            "memory_gib_per_unit": "Memory per unit (GiB)",
            "kinds": "Workloads",
            "interconnect_note": "Source of the measurement",
            "interconnect_on": "Measured on",
            "idle_stop_minutes": "Idle stop (minutes)",
            "idle_minutes": "GPUs are idle after (minutes)",
            "log_retention_days": "Logs kept (days)",
            "damping_minutes": "Quota falls after (minutes)",
            "max_units": "Maximum of units with added nodes",
            "node_minutes": "Added node is ready after (minutes)",
            "device_selector": "CEL selector",
        }

    def __init__(self, *args: Any, is_new: bool, **values: Any) -> None:
        super().__init__(*args, **values)
        if not is_new:
            del self.fields["slug"]
        for name in TEXTS:
            self.fields[name].strip = False  # type: ignore[attr-defined]
        for name, field in ROW_FIELDS.items():
            model_field = GpuClass._meta.get_field(name)
            self.fields[name] = field(label=str(model_field.verbose_name).capitalize())  # type: ignore[union-attr]
            self.sent_along |= {*self.fields[name].widget.names(name)}
        if not is_new and self.instance.life_cycle != GpuClass.LifeCycle.DRAFT:
            for name in IDENTITY_FIELDS:
                self.fields[name].help_text = "Fixed since the class was opened."

    def show_trials(self, counted: str, selected: str) -> None:
        """What the cluster said of the stored values, beside their fields."""
        for name, text in (("device_class", counted), ("device_selector", selected)):
            field = self.fields[name]
            field.help_text = f"{field.help_text} {text}".strip()

    def _post_clean(self) -> None:
        """Does nothing to the instance: only actions write."""

    def values(self) -> dict[str, Any]:
        """Of the fields that an action takes. Browsers end lines with CR LF."""
        texts = {name: self.cleaned_data[name].replace("\r\n", "\n") for name in TEXTS}
        return {name: self.cleaned_data[name] for name in EDITABLE_FIELDS} | texts

    def sections(self) -> Iterator[FormSection]:
        for title, note, of, names in SECTIONS:
            there = [name for name in names if name in self.fields]
            yield FormSection(
                title,
                note,
                of,
                [self[name] for name in there if name not in ROW_FIELDS],
                [self._rows(name) for name in there if name in ROW_FIELDS],
            )

    def _rows(self, name: str) -> FieldRows:
        field: Any = self.fields[name]
        stored = field.rows_of(getattr(self.instance, name))
        found = field.widget.value_from_datadict(self.data, {}, name) if self.is_bound else stored
        blank = [dict.fromkeys((column.name for column in field.widget.columns), "")] * BLANK_ROWS
        return FieldRows(
            self[name], [[(column, row[column.name]) for column in field.widget.columns] for row in [*found, *blank]]
        )


class ImageEditorForm(StrictForm, forms.ModelForm):
    """`instance`: the image to edit. `seen`: as for a class."""

    sent_along = StrictForm.sent_along | {"seen"}
    vendor = forms.ChoiceField(
        label="GPUs",
        required=False,
        choices=[("", "any, or none"), *((name, words[0]) for name, words in VENDORS.items())],
    )

    class Meta:
        model = Image
        fields = ("name", *IMAGE_FIELDS)
        widgets = {"deprecated_since": forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")}
        labels = {"kind": "For", "min_cuda": "Minimum CUDA version"}
        help_texts = {"min_cuda": "Of the driver, for example 12.4; empty: not checked"}

    def __init__(self, *args: Any, is_new: bool, **values: Any) -> None:
        super().__init__(*args, **values)
        if not is_new:
            del self.fields["name"]
        successor: Any = self.fields["successor"]
        successor.queryset, successor.empty_label = Image.objects.exclude(pk=self.instance.pk), "none"

    def _post_clean(self) -> None:
        """Does nothing to the instance: only actions write."""

    def values(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in IMAGE_FIELDS}
