"""The filter of the list of teams."""

from __future__ import annotations

from typing import Any

from django import forms

from catalog.models import GpuClass
from cluster.models import Cluster
from desk.teams.sql import SORTS
from desk.teams.types import IDLE_DAYS_MAX, TEAM_STATES, TeamFilter
from portal.ui.statuses import STATUSES


class TeamFilterForm(forms.Form):
    """A value that cannot be parsed is ignored."""

    q = forms.CharField(required=False, max_length=80, label="Team")
    state = forms.ChoiceField(
        required=False, choices=[("", "Any"), *((one, STATUSES[one].word) for one in TEAM_STATES)]
    )
    idle = forms.IntegerField(required=False, min_value=1, max_value=IDLE_DAYS_MAX, label="Idle for days")
    sort = forms.ChoiceField(required=False, choices=[(name, one.label) for name, one in SORTS.items()])

    def __init__(self, *args: Any, cluster: Cluster, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        found = GpuClass.objects.filter(cluster=cluster).order_by("slug").values_list("pk", "slug", "name")
        self._classes = {slug: pk for pk, slug, _ in found}
        named = [(slug, name) for _, slug, name in found]
        self.fields["class"] = forms.ChoiceField(required=False, choices=[("", "Any"), *named])

    def chosen(self) -> TeamFilter:
        self.is_valid()
        found = self.cleaned_data
        return TeamFilter(
            text=found.get("q", ""),
            state=found.get("state", ""),
            gpu_class=self._classes.get(found.get("class", "")),
            idle_days=found.get("idle"),
            sort=found.get("sort") or "team",
        )
