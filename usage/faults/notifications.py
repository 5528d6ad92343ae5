"""Tells the people of concerned runs and the operators about a fault, once.

In the look that finds it, each run in a transaction of its own. A run on several GPUs with the same fault gets one
mail; so do operators for all faults of one look.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from accounts.models import Role, User
from cluster.models import Cluster
from cluster.reads.xid import PROGRAM_XIDS
from portal.ui.text import plural, time_with_zone
from tenants.core.notifications import page_url as address
from usage.faults import policy
from usage.faults.models import FaultRun, GpuFault
from usage.faults.types import FaultKind
from workloads.core.notifications import page_url, recipients_of
from workloads.interruption.loss import file_loss_of
from workloads.models import Run

GPU_FAULT_RULE = system_actor("rule GPU faults")
# The rest follows a minute later: a failed cooling may concern all GPUs of a room.
RUNS_AT_ONCE = 100
LISTED_MOST = 20


def tell_all(cluster: Cluster, *, at: datetime) -> None:
    """Two queries if there is nobody to tell."""
    untold = FaultRun.objects.filter(told_at=None, fault__cluster=cluster)
    for run_id in untold.order_by("run_id").values_list("run_id", flat=True).distinct()[:RUNS_AT_ONCE]:
        _tell_run(run_id, at)
    _tell_operators(cluster, at)


@transaction.atomic
def _tell_run(run_id: int, at: datetime) -> None:
    """What the run was told of a short time ago, of another GPU or before it cleared, is not told again."""
    rows = FaultRun.objects.select_for_update(of=("self",), no_key=True).filter(told_at=None, run_id=run_id)
    links = list(rows.select_related("fault").order_by("pk"))
    told = set(
        FaultRun.objects.filter(run_id=run_id, told_at__gte=at - policy.SAME_WITHIN).values_list(
            "fault__kind", "fault__code"
        )
    )
    FaultRun.objects.filter(pk__in=[one.pk for one in links]).update(told_at=at)
    by_kind: dict[tuple[str, int], list[GpuFault]] = defaultdict(list)
    for one in links:
        if (one.fault.kind, one.fault.code) not in told:
            by_kind[one.fault.kind, one.fault.code].append(one.fault)
    if not by_kind:
        return
    run = Run.objects.select_related("workload__tenant", "workload__namespace").get(pk=run_id)
    for (kind, code), faults in by_kind.items():
        _tell_of(run, FaultKind(kind), code, faults)


def _tell_of(run: Run, kind: FaultKind, code: int, faults: Sequence[GpuFault]) -> None:
    workload, team = run.workload, run.workload.tenant
    meaning, title = policy.meaning_of(kind, code), policy.title_of(kind, code)
    devices = ", ".join(sorted({one.device for one in faults}))
    after = {"run": run.number, "fault": kind, "code": code, "devices": devices}
    event = record(GPU_FAULT_RULE, "run.gpu_fault_told", workload, tenant=team.slug, after=after)
    since = time_with_zone(min(one.first_seen for one in faults))
    body = (
        f"A GPU of {workload.name} reported a fault: {title} ({devices}, seen at {since}). {meaning.what}\n\n"
        f"{meaning.loss} {file_loss_of(run)}\n\n{meaning.do}\n\n{page_url(workload)}"
    )
    deliver(event, recipients_of(run), subject=f"{workload.name} of {team.name}: {title}", body=body)


@transaction.atomic
def _tell_operators(cluster: Cluster, at: datetime) -> None:
    """Of faults of hardware."""
    programs = Q(kind=FaultKind.XID, code__in=PROGRAM_XIDS)
    rows = GpuFault.objects.select_for_update(of=("self",), no_key=True).filter(cluster=cluster, told_at=None)
    faults = list(rows.exclude(programs).order_by("node", "device", "pk"))
    if not faults:
        return
    GpuFault.objects.filter(pk__in=[one.pk for one in faults]).update(told_at=at)
    listed = "\n\n".join(_operator_text(one) for one in faults[:LISTED_MOST])
    more = f"\n\nAnd {len(faults) - LISTED_MOST} more." if len(faults) > LISTED_MOST else ""
    after = {"faults": [f"{one}: {policy.title_of(FaultKind(one.kind), one.code)}" for one in faults[:LISTED_MOST]]}
    event = record(GPU_FAULT_RULE, "gpu.fault_told", faults[0], after=after)
    nodes = sorted({one.node for one in faults})
    where = f"node {nodes[0]}" if len(nodes) == 1 else plural(len(nodes), "node")
    first = policy.title_of(FaultKind(faults[0].kind), faults[0].code)
    what = first if len(faults) == 1 else plural(len(faults), "GPU fault")
    page = address("/nodes?state=gpu-fault")
    operators = User.objects.filter(is_active=True, roles__contains=[str(Role.OPERATOR)]).order_by("pk")
    deliver(event, operators, subject=f"{what} on {where}", body=f"{listed}{more}\n\n{page}")


def _operator_text(fault: GpuFault) -> str:
    kind = FaultKind(fault.kind)
    meaning, command = policy.meaning_of(kind, fault.code), policy.cordon_command(kind, fault.code, fault.node)
    text = f"{fault}: {policy.title_of(kind, fault.code)}. {meaning.what} {meaning.operators}"
    return f"{text}\n{command}" if command else text
