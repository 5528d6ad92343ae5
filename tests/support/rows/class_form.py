"""What a browser sends from the form of a class in the catalog's editor."""

from __future__ import annotations

from typing import Any

from catalog.classes.actions import EDITABLE_FIELDS
from catalog.models import GpuClass
from desk.catalog.editor.actions import version_of
from desk.catalog.editor.forms import ROW_FIELDS


def class_form(gpu_class: GpuClass, *, do: str = "save", **changes: Any) -> dict[str, Any]:
    """The values of the class, with `changes`; labels and tolerations as rows."""
    if gpu_class.pk:
        gpu_class = GpuClass.objects.get(pk=gpu_class.pk)
    values = {**{name: getattr(gpu_class, name) for name in EDITABLE_FIELDS}, **changes}
    sent: dict[str, Any] = {"do": do, "seen": version_of(gpu_class)}
    for name, value in values.items():
        if name in ROW_FIELDS:
            field = ROW_FIELDS[name]()
            rows = field.rows_of(value)
            sent |= {f"{name}.{one.name}": [row[one.name] for row in rows] for one in field.widget.columns}
        elif value is True:
            sent[name] = "on"
        elif value is not False:
            sent[name] = "" if value is None else value
    return sent
