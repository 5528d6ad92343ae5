"""Record and withdraw what was measured of the interconnect of a node."""

from __future__ import annotations

from datetime import date

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.actions import record
from catalog.classes import policy
from catalog.interconnect.node_state import gpu_count, state_of
from catalog.interconnect.queries import measurement_of, measurements
from catalog.interconnect.reading import Reading, read_output
from catalog.interconnect.types import UnreadableError
from catalog.models import NodeMeasurement
from cluster.models import Cluster
from cluster.reads import queries as mirror
from cluster.reads.observed import Node
from portal.core.errors import NOT_FOUND, Refused, refuse, refuse_if

OUTPUT_MAX = 200_000
BECAUSE_MAX = 500


@transaction.atomic
def record_measurement(
    cluster: Cluster, node: str, *, output: str, measured_on: date | None, by: Actor
) -> list[NodeMeasurement]:
    """`output`: of nvidia-smi topo -m, of all_reduce_perf, or a log with both. `measured_on` None: today.

    Raises Refused: not_allowed (403), not_found (404), bad_measurement (422).
    """
    refuse_if(policy.may_edit(by))
    found = mirror.node_named(cluster.pk, node)
    if found is None or by.user is None:
        raise Refused(NOT_FOUND)
    today = timezone.localdate()
    if measured_on is not None and measured_on > today:
        raise refuse("bad_measurement", "Enter the day of the measurement, today or earlier.", field="measured_on")
    try:
        read = read_output(output)
    except UnreadableError as error:
        raise refuse("bad_measurement", error.sentence, field="output") from error
    _check_count(read, found)
    rows = _rows(read)
    state = state_of(found.labels, found.uid)
    same = {"product": state.product, "driver": state.driver, "node_uid": state.uid, "by": by.user}
    made = NodeMeasurement.objects.bulk_create(
        NodeMeasurement(cluster=cluster, node=node, measured_on=measured_on or today, **values, **same)
        for values in rows
    )
    told = {"links": read.links, "all_reduce": read.all_reduce}
    after = {name: value.text for name, value in told.items() if value is not None}
    record(by, "node.measured", made[0], after={**after, "measured_on": made[0].measured_on})
    return made


@transaction.atomic
def withdraw_measurement(cluster: Cluster, node: str, pk: int, *, because: str, by: Actor) -> NodeMeasurement:
    """The one before it counts again; the row stays, with the reason. Also of a node that is gone. To withdraw it again
    changes nothing.

    Raises Refused: not_allowed (403), not_found (404), reason_missing (422).
    """
    refuse_if(policy.may_edit(by))
    row = measurements(cluster, node).select_for_update(of=("self",)).filter(pk=pk).first()
    if row is None:
        raise Refused(NOT_FOUND)
    because = " ".join(because.split())
    if not 0 < len(because) <= BECAUSE_MAX:
        text = f"Enter a reason of 1 to {BECAUSE_MAX} characters. It stays on the page of the node."
        raise refuse("reason_missing", text, field="because")
    if row.withdrawn_at is None:
        NodeMeasurement.objects.filter(pk=pk).update(withdrawn_at=Now(), withdrawn_because=because)
        row.refresh_from_db(fields=["withdrawn_at", "withdrawn_because"])
        told = {row.kind: measurement_of(row).text, "measured_on": row.measured_on}
        record(by, "node.measurement_withdrawn", row, before=told, after={"because": because})
    return row


def _check_count(read: Reading, node: Node) -> None:
    """The links of some GPUs of a node are not those of the node."""
    has = gpu_count(node.labels)
    if read.links is not None and has is not None and read.links.gpus != has:
        text = (
            f"The matrix has {read.links.gpus} GPUs, and {node.name} has {has}. Measure in a pod that requests all of "
            "them, or check that it is the output of this node."
        )
        raise refuse("bad_measurement", text, field="output")


def _rows(read: Reading) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    if read.links is not None:
        found.append({"kind": NodeMeasurement.Kind.LINKS, "gpus": read.links.gpus, "links": read.links.rows})
    if (one := read.all_reduce) is not None:
        values = {"bus_gb_s": one.bus_gb_s, "message_bytes": one.message_bytes}
        found.append({"kind": NodeMeasurement.Kind.ALL_REDUCE, "gpus": one.gpus, **values})
    return found
