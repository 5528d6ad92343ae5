"""The status words, icons and small charts that all pages share: {% load ui %}.

`STATUSES` is the whole vocabulary. A page never writes a status by hand; a word that is not in it is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any

from django import template
from django.forms import BoundField, CheckboxInput, CheckboxSelectMultiple, RadioSelect, Select
from django.template import Context
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from portal.ui.promise_curve import PromiseCurve
from portal.ui.promise_curve import promise_curve as promise_geometry
from portal.ui.quota_bar import QuotaBar
from portal.ui.quota_bar import quota_bar as geometry
from portal.ui.statuses import STATUSES
from portal.ui.text import NO_PLURAL, plural

register = template.Library()


@register.simple_tag
def icon(name: str, css: str = "") -> SafeString:
    """An icon of the sprite, hidden from screen readers: a word always stands beside it."""
    return format_html(
        '<svg class="i{}" aria-hidden="true"><use href="{}#{}"/></svg>', f" {css}" if css else "", _sprite(), name
    )


@cache
def _sprite() -> str:
    """The URL of the sprite. Cached: a page needs it some twenty times, and it is constant in a process."""
    return static("vendor/tabler/icons.svg")


@register.inclusion_tag("components/status/_status.html")
def status(name: Any, label: str = "") -> dict[str, object]:
    """A chip of the fixed vocabulary. `label` may add to the word ("Queued, class held"), never replace its meaning."""
    found = STATUSES[str(name).lower()]
    return {"word": label or found.word, "icon": found.icon, "tone": found.tone}


@register.inclusion_tag("components/charts/_quota_bar.html")
def quota_bar(
    granted: float,
    used: float | None,
    borrowed: float | None = 0,
    queued: float | None = 0,
    unit: str = "unit",
    lent: Any = None,
) -> dict[str, QuotaBar]:
    """`lent` has `most` and `text`. None: it is unknown and not drawn."""
    most, words = (lent.most, lent.text) if lent and lent.most else (0, "")
    return {
        "bar": geometry(
            granted=granted, used=used, borrowed=borrowed, queued=queued, unit=unit, lent=most, lent_words=words
        )
    }


@register.simple_tag
def cells(rows: Iterable[Any]) -> SafeString:
    """Each row has name, short, y and cells; a cell has look (a fixed word), x and width in percent. Written in Python
    because a page has hundreds of cells, for which loops in a template take 20 ms.
    """
    return SafeString(
        "".join(
            f'<svg y="{row.y}" width="100%" height="16"><title>{escape(row.name)}</title>'
            f'<text x="0" y="11">{escape(row.short)}</text>{"".join(map(_cell, row.cells))}</svg>'
            for row in rows
        )
    )


def _cell(one: Any) -> str:
    return f'<rect class="m-{one.look}" x="{one.x:g}%" y="2" width="{one.width:g}%" height="10" rx="1.5"/>'


@register.inclusion_tag("components/charts/_promise_curve.html")
def promise_curve(curve: Any, narrow: bool = False) -> dict[str, PromiseCurve]:
    """`curve` has before, after (steps), limit, start, end and unit; see portal/ui/promise_curve.py.

    `narrow`: the chart has half the width of a page or less.
    """
    return {
        "curve": promise_geometry(
            before=curve.before,
            after=curve.after,
            limit=curve.limit,
            start=curve.start,
            end=curve.end,
            unit=curve.unit,
            is_narrow=narrow,
        )
    }


@register.filter
def units(count: float | None, unit: str = "unit") -> str:
    """`4|units:"GPU"` → "4 GPUs". An unknown number is a dash, never a zero."""
    return "–" if count is None else plural(float(count), unit)


@register.filter
def code_label(code: str) -> str:
    """`waiting_for_quota` → "Waiting for quota": a code as an option of a select field."""
    return code.replace("_", " ").capitalize()


@register.filter
def unit_label(unit: str) -> str:
    """The label of a field for an amount: "Units", or "GiB" for storage."""
    return unit if unit in NO_PLURAL else "Units"


@register.simple_tag(takes_context=True)
def when(context: Context, at: datetime | None, style: str = "relative", missing: str = "–") -> SafeString | str:
    """A moment. Styles: relative ("5 minutes ago"), clock ("10:42:07"), minute
    ("10:42", with the day where it is not today), date ("5 Dec 2026"), countdown ("in 4 min").

    The text is complete without JavaScript, in the server's time zone. portal.js converts it to the user's time zone
    and updates it.
    """
    if at is None:
        return missing
    absolute = f"{timezone.localtime(at):%-d %b %Y, %H:%M:%S %Z}"
    # A fragment of a stream has no request. It is sent again when its bytes change, and "3 minutes ago" would change
    # all the time. A page with a stream has JavaScript, which makes the time relative.
    words = {"clock": _clock, "date": _date, "minute": _minute}.get(style, relative if is_page(context) else _moment)
    text = words(at)
    return format_html(
        '<time datetime="{}" title="{}" data-when="{}">{}</time>',
        at.isoformat(timespec="seconds"),
        absolute,
        style,
        text,
    )


def is_page(context: Context) -> bool:
    return getattr(context, "request", None) is not None


@register.simple_tag(takes_context=True)
def as_of(context: Context, at: datetime) -> SafeString | str:
    """The time for pages without JavaScript, beside a stream's "Live"; omitted in stream fragments (see `when`)."""
    return (
        format_html('<span class="when-still">Last updated {}</span>', when(context, at, "clock"))
        if is_page(context)
        else ""
    )


def _moment(at: datetime) -> str:
    """With the year if it is another one: a certificate that ends in ten years would look as if it had ended."""
    local = timezone.localtime(at)
    year = "" if local.year == timezone.localdate().year else f" {local.year}"
    return f"{local:%-d %b}{year}, {local:%H:%M}"


def _clock(at: datetime) -> str:
    return f"{timezone.localtime(at):%H:%M:%S}"


def _minute(at: datetime) -> str:
    local = timezone.localtime(at)
    return f"{local:%H:%M}" if local.date() == timezone.localdate() else _moment(at)


def _date(at: datetime) -> str:
    return f"{timezone.localtime(at):%-d %b %Y}"


STEPS = ((60, 1, "second"), (3600, 60, "minute"), (86400, 3600, "hour"), (float("inf"), 86400, "day"))


def relative(at: datetime, now: datetime | None = None) -> str:
    """`5 minutes ago`, `in 2 hours`: only the largest unit, since the title has the exact time."""
    seconds = (at - (now or timezone.now())).total_seconds()
    if abs(seconds) < 10:
        return "in a moment" if seconds > 0 else "just now"
    size, unit = next((size, unit) for limit, size, unit in STEPS if abs(seconds) < limit)
    amount = plural(int(abs(seconds) // size), unit)
    return f"in {amount}" if seconds > 0 else f"{amount} ago"


@register.simple_tag
def widget(field: BoundField, css: str = "") -> SafeString:
    """The widget of a form field with the portal's CSS classes. Django adds aria-describedby and aria-invalid."""
    control = field.field.widget
    if isinstance(control, CheckboxInput):
        look = "form-check-input"
    elif isinstance(control, Select) and not isinstance(control, RadioSelect | CheckboxSelectMultiple):
        look = "form-select"
    else:
        look = "form-control"
    return field.as_widget(attrs={"class": f"{look} {css}".strip()})


@register.filter
def is_checkbox(field: BoundField) -> bool:
    return isinstance(field.field.widget, CheckboxInput)


@register.filter
def is_choice_set(field: BoundField) -> bool:
    """Whether the field has several controls, so that it needs a fieldset with a legend instead of a label."""
    return isinstance(field.field.widget, RadioSelect | CheckboxSelectMultiple)


@register.filter
def ticked(text: str) -> SafeString:
    """Renders text between backticks as code; the rest is unchanged."""
    kinds = ("{}", "<code>{}</code>")
    return mark_safe("".join(format_html(kinds[index % 2], part) for index, part in enumerate(text.split("`"))))
