"""How many units of a class a team uses with production priority, against the limit per team."""

from __future__ import annotations

from django.db.models import Sum

from catalog.models import GpuClass
from cluster.manifests.run_spec import PRODUCTION
from portal.core.errors import Refusal
from tenants.models import Namespace
from workloads.core.unit_sql import goes_before, total_units
from workloads.launch.priorities.policy import production_limit_refusal
from workloads.models import Run


def production_refusal(
    namespace: Namespace, gpu_class: GpuClass, *, priority: str, units: int, besides: str = ""
) -> Refusal | None:
    """Why this priority is not possible for this many more units. `besides`: the workload itself, which counts once.

    No query unless there is a limit to it; else two. Inside the transaction of the launch: of two that ask at once the
    second one counts the first.
    """
    if priority != PRODUCTION or gpu_class.production_limit is None:
        return None
    Namespace.objects.select_for_update(no_key=True).get(pk=namespace.pk)
    alive = Run.objects.filter(workload__namespace=namespace, ended_at=None, spec__gpu_class=gpu_class.slug)
    found = alive.filter(goes_before(PRODUCTION)).exclude(workload__name=besides).aggregate(units=Sum(total_units()))
    return production_limit_refusal(gpu_class.name, units, others=found["units"] or 0, limit=gpu_class.production_limit)
