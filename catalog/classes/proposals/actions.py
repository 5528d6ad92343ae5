"""Accept a proposed class, dismiss it, propose it again."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import record
from catalog.classes import policy as class_policy
from catalog.classes.actions import EDITABLE_FIELDS, activate, create_class
from catalog.discovery.types import ClassProposal
from catalog.models import DismissedProposal, GpuClass
from cluster.models import Cluster
from cluster.reads import queries as read_queries
from portal.core.errors import get_or_refuse, refuse_if


@transaction.atomic
def accept_proposals(proposals: list[ClassProposal], *, by: Actor, cluster: Cluster | None = None) -> list[GpuClass]:
    """Creates and opens a class for each proposal whose slug is new; existing classes stay as staff edited them."""
    cluster = cluster or read_queries.current_cluster()
    known = set(GpuClass.objects.filter(cluster=cluster).values_list("slug", flat=True))
    made = [
        create_class(slug=proposal.slug, cluster=cluster, by=by, **class_values(proposal))
        for proposal in proposals
        if proposal.slug not in known
    ]
    return [activate(gpu_class.pk, by=by) for gpu_class in made]


@transaction.atomic
def dismiss_proposal(slug: str, *, reason: str, by: Actor, cluster: Cluster | None = None) -> DismissedProposal:
    """Stops proposing capacity of this name. Raises Refused: not_allowed (403), reason_missing (422)."""
    refuse_if(class_policy.may_edit(by))
    reason = " ".join(reason.split())
    refuse_if(class_policy.dismiss_refusal(reason=reason))
    row, _made = DismissedProposal.objects.update_or_create(
        cluster=cluster or read_queries.current_cluster(), slug=slug[:40], defaults={"reason": reason}
    )
    record(by, "proposal.dismissed", row, after={"reason": reason})
    return row


@transaction.atomic
def restore_proposal(slug: str, *, by: Actor, cluster: Cluster | None = None) -> None:
    """Proposes it again. Raises Refused: not_allowed (403), not_found (404)."""
    refuse_if(class_policy.may_edit(by))
    rows = DismissedProposal.objects.select_for_update().filter(cluster=cluster or read_queries.current_cluster())
    row = get_or_refuse(rows, slug=slug)
    record(by, "proposal.restored", row, before={"reason": row.reason})
    row.delete()


def class_values(proposal: ClassProposal) -> dict[str, Any]:
    same = {name: getattr(proposal, name) for name in EDITABLE_FIELDS if hasattr(proposal, name)}
    return {
        **same,
        "node_labels": dict(proposal.node_labels),
        "tolerations": [dict(toleration) for toleration in proposal.tolerations],
        "weight": round(Decimal(proposal.weight.numerator) / Decimal(proposal.weight.denominator), 4),
    }
