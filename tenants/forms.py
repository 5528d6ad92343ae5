"""Shapes of what people type. What is allowed is said by the action."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone

from tenants import policy
from tenants.models import Membership, QuotaLine
from tenants.queries.requests import LineRow

# Browsers take and show ISO dates only, whatever the language.
DATE = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
DAYS_DEFAULT = 90


def start_of(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def end_of(day: date) -> datetime:
    """The last instant of the day that a person named as the last one; the next day's grant follows without a gap, in
    which the neighbours would take its units away.
    """
    return timezone.make_aware(datetime.combine(day, time.max))


class FormWithLines(forms.Form):
    """A form beside rows that have errors of their own: a refusal of `lines[1].units` belongs to the second row."""

    LINE_FIELDS = ("gpu_class", "units", "kind", "starts_at", "ends_at", "grace_hours", "reason")

    def name_lines(self, keys: Sequence[Any]) -> None:
        """`keys`: what identifies the lines, in the order in which the action gets them."""
        self.line_keys = tuple(keys)
        for index in range(len(keys)):
            for name in self.LINE_FIELDS:
                self.fields[f"lines[{index}].{name}"] = forms.Field(required=False, widget=forms.HiddenInput)

    def line_errors(self) -> dict[Any, str]:
        found = {}
        for index, key in enumerate(getattr(self, "line_keys", ())):
            told = [text for name in self.LINE_FIELDS for text in self.errors.get(f"lines[{index}].{name}", [])]
            if told:
                found[key] = " ".join(str(text) for text in told)
        return found


class RequestForm(FormWithLines):
    """Period and reason; what is typed per class is read by `lines_typed`, since classes are rows."""

    from_date = forms.DateField(label="From", widget=DATE)
    until_date = forms.DateField(label="To", widget=DATE, help_text="The last day, included.")
    justification = forms.CharField(
        label="What for",
        max_length=policy.JUSTIFICATION_MAX,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Approvers decide by this: what runs, how long, what happens without it.",
    )


class DecisionForm(FormWithLines):
    """One answer for all pending lines of a request, with units and dates of each."""

    decision = forms.ChoiceField(choices=[("approve", "approve"), ("deny", "deny")])
    reason = forms.CharField(required=False, max_length=policy.REASON_MAX)
    over_promise = forms.BooleanField(required=False)

    def __init__(self, *args: Any, lines: Collection[LineRow], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for line in lines:
            units = forms.IntegerField(label="Units", min_value=0, max_value=policy.UNITS_MAX)
            self.fields[f"units-{line.pk}"] = units
            self.fields[f"from-{line.pk}"] = forms.DateField(label="From")
            self.fields[f"until-{line.pk}"] = forms.DateField(label="To")
            self.fields[f"grace-{line.pk}"] = forms.IntegerField(label="Grace", required=False)
        self.name_lines([line.pk for line in lines])

    def line_errors(self) -> dict[Any, str]:
        """With what could not be read: "To: Enter a valid date."."""
        found = super().line_errors()
        for pk in self.line_keys:
            boxes = [self[f"{name}-{pk}"] for name in ("units", "from", "until", "grace")]
            told = [f"{box.label}: {text}" for box in boxes for text in box.errors]
            if told:
                found[pk] = " ".join([*told, *([found[pk]] if pk in found else [])])
        return found


class ReclaimForm(FormWithLines):
    """Of one grant."""

    units = forms.IntegerField(label="New total", min_value=0, max_value=policy.UNITS_MAX)
    from_date = forms.DateField(label="From", widget=DATE)
    justification = forms.CharField(
        label="Why",
        max_length=policy.JUSTIFICATION_MAX,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="The team and the approver read it.",
    )


class CommentForm(forms.Form):
    text = forms.CharField(
        label="Comment", strip=True, max_length=policy.COMMENT_MAX, widget=forms.Textarea(attrs={"rows": 3})
    )
    asks_back = forms.BooleanField(required=False)


class MemberForm(forms.Form):
    email = forms.EmailField(label="E-mail address", max_length=254)
    role = forms.ChoiceField(choices=Membership.Role.choices, initial=Membership.Role.MEMBER)


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Membership.Role.choices)

    @property
    def first_error(self) -> str:
        return str(next(iter(self.errors.values()))[0])


class AnswerForm(forms.Form):
    """To somebody who asks to join."""

    answer = forms.ChoiceField(choices=[("accept", "accept"), ("decline", "decline")])
    role = forms.ChoiceField(choices=Membership.Role.choices, required=False)
    reason = forms.CharField(required=False, max_length=policy.MESSAGE_MAX)

    def clean_role(self) -> str:
        return self.cleaned_data["role"] or Membership.Role.MEMBER


class JoinForm(forms.Form):
    team = forms.SlugField(max_length=40, widget=forms.HiddenInput)
    message = forms.CharField(required=False, label="A word to its owners", max_length=policy.MESSAGE_MAX)


def usual_period() -> dict[str, date]:
    today = timezone.localdate()
    return {"from_date": today, "until_date": today + timedelta(days=DAYS_DEFAULT)}


@dataclass(frozen=True)
class LineTyped:
    """One class of the request form. `kind` as sent: what it may be is said by the action. Dates None: the period of
    the whole request.
    """

    gpu_class: str
    units: int
    kind: str
    from_date: date | None
    until_date: date | None


def lines_typed(data: Mapping[str, str], slugs: Collection[str]) -> tuple[list[LineTyped], dict[str, str]]:
    """`units-<slug>`, `kind-<slug>`, `from-<slug>` and `until-<slug>`; classes of which nothing was typed are left out.
    And what could not be read, as a sentence by slug.
    """
    lines: list[LineTyped] = []
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
            told.append("Say how many units, or leave this class as it is: new total, no dates.")
        if told:
            errors[slug] = " ".join(told)
        elif amount is not None:
            lines.append(LineTyped(slug, amount, str(kind), starts, ends))
    return lines, errors


def _read(field: forms.Field, text: str, label: str, told: list[str]) -> Any:
    try:
        return field.clean(text.strip())
    except ValidationError as error:
        told.append(label + " ".join(error.messages))
        return None
