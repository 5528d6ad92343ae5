"""The cluster that this installation works on, set up with its pool."""

from __future__ import annotations

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import record
from catalog.classes import policy as class_policy
from catalog.classes.actions import touch_pool
from cluster.models import Cluster
from cluster.observe_only.actions import set_observe_only
from portal.core.errors import refuse_if


@transaction.atomic
def configure_cluster(
    *, name: str, notebooks_domain: str, cohort: str, by: Actor, is_observe_only: bool = False
) -> Cluster:
    """Creates or changes the row of the cluster of this installation, with its pool. `is_observe_only`: begins
    observe-only in the same transaction, so that no worker writes before; False ends nothing.
    """
    refuse_if(class_policy.may_edit(by))
    values = {"notebooks_domain": notebooks_domain, "cohort": cohort}
    cluster, _created = Cluster.objects.update_or_create(name=name, defaults=values)
    record(by, "cluster.settled", cluster, after=values)
    if is_observe_only:
        cluster = set_observe_only(cluster, wanted=True, by=by)
    touch_pool(cluster)
    return cluster
