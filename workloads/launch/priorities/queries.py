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
    """Returns why so many more units cannot have this priority. `besides`: the workload itself, whose units are not
    counted twice.

    No query if the class has no limit, otherwise two. Must run in the transaction of the launch: the row lock makes the
    second of two concurrent launches count the first.
    """
    if priority != PRODUCTION or gpu_class.production_limit is None:
        return None
    Namespace.objects.select_for_update(no_key=True).get(pk=namespace.pk)
    alive = Run.objects.filter(workload__namespace=namespace, ended_at=None, spec__gpu_class=gpu_class.slug)
    found = alive.filter(goes_before(PRODUCTION)).exclude(workload__name=besides).aggregate(units=Sum(total_units()))
    return production_limit_refusal(gpu_class.name, units, others=found["units"] or 0, limit=gpu_class.production_limit)
