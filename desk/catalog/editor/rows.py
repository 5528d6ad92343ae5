"""Form fields made of rows of text fields: labels and tolerations. Empty rows are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from django import forms
from django.http import QueryDict

from catalog.classes.validation.field_checks import TOLERATION_CHOICES

BLANK_ROWS = 2
Row = dict[str, str]


@dataclass(frozen=True)
class Column:
    """`choices`: of a select field; () for a text field."""

    name: str
    label: str
    choices: tuple[str, ...] = ()


class RowsInput(forms.Widget):
    """The template renders the rows (`_rows.html`). The fields of a column have the same name, `FIELD.COLUMN`."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        super().__init__()
        self.columns = columns

    def names(self, field: str) -> list[str]:
        return [f"{field}.{column.name}" for column in self.columns]

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> list[Row]:
        cells = [data.getlist(one) if isinstance(data, QueryDict) else [] for one in self.names(name)]
        rows = [[cell.strip() for cell in row] for row in zip_longest(*cells, fillvalue="")]
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in rows if any(row)]


class RowsField(forms.Field):
    widget: RowsInput

    def __init__(self, columns: tuple[Column, ...], **values: Any) -> None:
        super().__init__(required=False, widget=RowsInput(columns), **values)

    def rows_of(self, stored: Any) -> list[Row]:
        """A stored value as rows."""
        raise NotImplementedError


class LabelsField(RowsField):
    """A dict of texts."""

    def __init__(self, **values: Any) -> None:
        super().__init__((Column("name", "Label"), Column("value", "Value")), **values)

    def rows_of(self, stored: Any) -> list[Row]:
        return [{"name": name, "value": str(value)} for name, value in sorted((stored or {}).items())]

    def clean(self, value: list[Row]) -> dict[str, str]:
        names = [row["name"] for row in value]
        if "" in names:
            raise forms.ValidationError("Enter the name of each label.")
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise forms.ValidationError(f"The label {twice} is there twice. Remove one of them.")
        return {row["name"]: row["value"] for row in value}


class TolerationsField(RowsField):
    """A list of tolerations as Kubernetes has them. Empty fields are left out of each."""

    def __init__(self, **values: Any) -> None:
        columns = (
            Column("key", "Key"),
            Column("operator", "Operator", TOLERATION_CHOICES["operator"]),
            Column("value", "Value"),
            Column("effect", "Effect", TOLERATION_CHOICES["effect"]),
            Column("tolerationSeconds", "Seconds"),
        )
        super().__init__(columns, **values)

    def rows_of(self, stored: Any) -> list[Row]:
        return [{column.name: str(one.get(column.name, "")) for column in self.widget.columns} for one in stored or ()]

    def clean(self, value: list[Row]) -> list[dict[str, Any]]:
        return [dict(_toleration(row)) for row in value]


def _toleration(row: Row) -> Iterable[tuple[str, Any]]:
    for name, cell in row.items():
        if name == "tolerationSeconds" and cell:
            if not (cell.isascii() and cell.isdigit() and len(cell) < 10):
                raise forms.ValidationError("Enter the seconds of a toleration as a whole number, or leave it empty.")
            yield name, int(cell)
        elif cell:
            yield name, cell
