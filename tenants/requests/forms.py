"""The form of a request for quota, and its lines as typed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone

from tenants.core.forms import DATE_INPUT, FormWithLines
from tenants.models import QuotaLine
from tenants.requests import policy

PERIOD_DAYS_DEFAULT = 90


class RequestForm(FormWithLines):
    """Period and reason; `read_typed_lines` reads the fields per class, since classes are rows."""

    from_date = forms.DateField(label="From", widget=DATE_INPUT)
    until_date = forms.DateField(label="To", widget=DATE_INPUT, help_text="The end date is inclusive.")
    justification = forms.CharField(
        label="Justification",
        max_length=policy.JUSTIFICATION_MAX,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="State what runs, for how long, and what happens without it.",
    )


def default_period() -> dict[str, date]:
    today = timezone.localdate()
    return {"from_date": today, "until_date": today + timedelta(days=PERIOD_DAYS_DEFAULT)}


@dataclass(frozen=True)
class TypedLine:
    """One class of the request form. `kind` as sent; the action checks it. Dates None: the whole request's period."""

    gpu_class: str
    units: int
    kind: str
    from_date: date | None
    until_date: date | None


def read_period(data: Mapping[str, str]) -> tuple[date, date]:
    """Returns the dates of the whole request; the default for a date that could not be parsed."""
    usual, day = default_period(), forms.DateField(required=False)
    starts, ends = (_read(day, data.get(name, ""), "", []) or usual[name] for name in ("from_date", "until_date"))
    return starts, ends


def read_typed_lines(data: Mapping[str, str], slugs: Collection[str]) -> tuple[list[TypedLine], dict[str, str]]:
    """Reads `units-<slug>`, `kind-<slug>`, `from-<slug>` and `until-<slug>`; leaves out classes without input. Also
    returns, by slug, a sentence about values that could not be parsed.
    """
    lines: list[TypedLine] = []
    errors: dict[str, str] = {}
    units = forms.IntegerField(label="Units", min_value=0, max_value=policy.UNITS_MAX, required=False)
    day = forms.DateField(required=False)
    for slug in slugs:
        told: list[str] = []
        amount = _read(units, data.get(f"units-{slug}", ""), "", told)
        starts = _read(day, data.get(f"from-{slug}", ""), "From: ", told)
        ends = _read(day, data.get(f"until-{slug}", ""), "To: ", told)
        kind = data.get(f"kind-{slug}") or QuotaLine.Kind.BASE
        if amount is None and not told and (starts or ends or kind != QuotaLine.Kind.BASE):
            told.append("Enter units, or clear the other fields of this class.")
        if told:
            errors[slug] = " ".join(told)
        elif amount is not None:
            lines.append(TypedLine(slug, amount, str(kind), starts, ends))
    return lines, errors


def _read(field: forms.Field, text: str, label: str, told: list[str]) -> Any:
    try:
        return field.clean(text.strip())
    except ValidationError as error:
        told.append(label + " ".join(error.messages))
        return None
