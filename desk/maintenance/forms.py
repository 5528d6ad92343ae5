"""The form by which operators plan a maintenance."""

from __future__ import annotations

from typing import Any

from django import forms

from catalog.classes.forms import DATETIME_INPUT
from cluster.models import Cluster, MirrorNode
from operations.maintenance.policy import REASON_MAX, STUCK_MINUTES
from operations.models import Maintenance

DEVICES_MAX = 500


class MaintenanceForm(forms.Form):
    nodes = forms.MultipleChoiceField(label="Nodes", widget=forms.SelectMultiple(attrs={"size": 6}))
    kind = forms.ChoiceField(label="Kind", choices=Maintenance.Kind.choices)
    reason = forms.CharField(
        label="Reason", max_length=REASON_MAX, help_text="Everybody who runs on the nodes reads it."
    )
    holds_from = forms.DateTimeField(
        label="Nothing new starts from", widget=DATETIME_INPUT, help_text="Running workloads continue until the start."
    )
    starts_at = forms.DateTimeField(
        label="Start", widget=DATETIME_INPUT, help_text="What still runs then is moved off the nodes and queued again."
    )
    ends_at = forms.DateTimeField(label="Expected end", widget=DATETIME_INPUT)
    mig_config = forms.CharField(
        label="MIG configuration",
        max_length=63,
        required=False,
        help_text="Value of nvidia.com/mig.config: a configuration that the MIG manager knows.",
    )
    plugin_config = forms.CharField(
        label="Device plugin configuration",
        max_length=63,
        required=False,
        help_text="Value of nvidia.com/device-plugin.config.",
    )
    expected = forms.CharField(
        label="Devices of each node afterwards",
        max_length=DEVICES_MAX,
        required=False,
        help_text="RESOURCE=NUMBER, separated by spaces: nvidia.com/mig-1g.10gb=28. Empty: the same as before.",
    )
    stuck_minutes = forms.IntegerField(
        label="Report a step as stuck after (minutes)",
        min_value=STUCK_MINUTES[0],
        max_value=STUCK_MINUTES[1],
        initial=30,
    )

    def __init__(self, *args: Any, cluster: Cluster, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = MirrorNode.objects.filter(cluster_id=cluster.pk).order_by("name").values_list("name", flat=True)
        self.fields["nodes"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]

    def clean_expected(self) -> dict[str, int]:
        found = {}
        for word in self.cleaned_data["expected"].replace(",", " ").split():
            name, equals, number = word.partition("=")
            if not (name and equals and number.isdigit()):
                raise forms.ValidationError(f"{word}: write RESOURCE=NUMBER, for example nvidia.com/mig-1g.10gb=28.")
            found[name] = int(number)
        return found

    def values(self) -> dict[str, Any]:
        """As keywords of the action, with the names of the nodes."""
        return dict(self.cleaned_data)
