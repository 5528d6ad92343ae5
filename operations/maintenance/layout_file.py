"""The file of layouts that the MIG manager reads: one key of a ConfigMap that the site names. The worker adds the
layout of a maintenance to it before anything on a node changes, and leaves all others as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from catalog.mig.layout_names import named_shares
from catalog.mig.parted import NotAdded, with_config
from cluster.client.errors import ClusterRefused, Conflict, NotFound
from cluster.client.kube import Kube
from portal.core.due import Deadline

KEY = "config.yaml"
# Kubelets renew the files of a ConfigMap within a minute or two, and a MIG manager that misses a layout fails at once.
READ_WITHIN = timedelta(minutes=2)


@dataclass(frozen=True)
class LayoutFile:
    """`problem`: why the layout is not in the file, as a sentence. `changed_at`: when anybody last changed the file.
    `is_added`: by this call.
    """

    problem: str = ""
    changed_at: datetime | None = None
    is_added: bool = False

    def waits(self, now: datetime) -> str:
        """Why the MIG manager must not be asked for the layout yet; "" if it may."""
        if self.problem or self.changed_at is None or now >= self.changed_at + READ_WITHIN:
            return self.problem
        return "The layout was just added to the MIG manager's file, which its node reads within 2 minutes."


def with_layout(kube: Kube, name: str, deadline: Deadline) -> LayoutFile:
    """Adds the layout if its name says what it is and the site lets the portal write the file. Raises Conflict if
    somebody else wrote first.
    """
    shares, place = named_shares(name), settings.MIG_LAYOUTS_CONFIG_MAP
    if shares is None or place is None:
        return LayoutFile()
    where = {"namespace": place[0], "name": place[1]}
    told = f"ConfigMap {'/'.join(place)}"
    try:
        body = kube.get("ConfigMap", **where).body
        text = (body.get("data") or {}).get(KEY)
        if text is None:
            return LayoutFile(f"{told} has no {KEY}, to which the layout can be added.")
        new = with_config(text, name, shares)
        if new == text:
            return LayoutFile(changed_at=_changed_at(body))
        deadline.check()
        change = {"metadata": {"resourceVersion": body["metadata"]["resourceVersion"]}, "data": {KEY: new}}
        return LayoutFile(changed_at=_changed_at(kube.merge("ConfigMap", body=change, **where).body), is_added=True)
    except NotAdded as why:
        return LayoutFile(f"The layout cannot be added to {told}: its {KEY} {why}")
    except NotFound:
        return LayoutFile(f"{told}, to which the layout is to be added, does not exist.")
    except Conflict:
        raise
    except ClusterRefused as refused:
        return LayoutFile(f"The layout cannot be added to {told}: {refused.text}")


def _changed_at(body: dict[str, Any]) -> datetime | None:
    owners = [one for one in body["metadata"].get("managedFields", ()) if f"f:{KEY}" in _data(one) and "time" in one]
    return max((datetime.fromisoformat(one["time"]) for one in owners), default=None)


def _data(entry: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (entry.get("fieldsV1") or {}).get("f:data") or {}
    return found
