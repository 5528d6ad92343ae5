"""Vendor and CUDA version of each class's nodes, for its images."""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection

from catalog.images.compatibility import HardwareFacts
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorNode

# The CUDA version that the driver of a node offers, as text of its `labels`: the label with the full version first; the
# other names are those of older releases of GPU Feature Discovery. NULL if there is no such label.
_TOLD = """coalesce(labels ->> 'nvidia.com/cuda.runtime-version.full',
                 nullif(concat_ws('.', labels ->> 'nvidia.com/cuda.runtime-version.major',
                                       labels ->> 'nvidia.com/cuda.runtime-version.minor'), ''),
                 nullif(concat_ws('.', labels ->> 'nvidia.com/cuda.runtime.major',
                                       labels ->> 'nvidia.com/cuda.runtime.minor'), ''))"""

# As numbers, so that 12.10 is more than 12.9; text that is not a version is unknown.
_NUMBERS = """CASE WHEN told ~ '^[0-9]{1,4}([.][0-9]{1,4})*$' THEN string_to_array(told, '.')::int[] END"""

# The lowest version on the nodes of a row `class`, for a statement with such a row. OFFSET 0: labels are unpacked once.
LEAST_CUDA = f"""
(SELECT array_to_string(min({_NUMBERS}), '.')
   FROM (SELECT {_TOLD} AS told
           FROM (SELECT record -> 'labels' AS labels FROM {MirrorNode._meta.db_table} node
                  WHERE node.cluster_id = class.cluster_id AND class.node_labels <> '{{}}' OFFSET 0) of_all
          WHERE labels @> class.node_labels) of_class)"""


def hardware_facts(cluster: Cluster, classes: Collection[GpuClass]) -> dict[int, HardwareFacts]:
    """By class id. One query: nodes that are equal for every class are counted once, whatever their number."""
    keys = sorted({key for one in classes for key in one.node_labels})
    statement = f"""
        SELECT shape, array_to_string(min({_NUMBERS}), '.')
          FROM (SELECT ARRAY(SELECT labels ->> key FROM unnest(%s::text[]) key) AS shape, {_TOLD} AS told
                  FROM (SELECT record -> 'labels' AS labels FROM {MirrorNode._meta.db_table}
                         WHERE cluster_id = %s OFFSET 0) of_all) of_all
         GROUP BY shape"""
    with connection.cursor() as cursor:
        cursor.execute(statement, [keys, cluster.pk])
        shapes = [(dict(zip(keys, shape, strict=True)), cuda) for shape, cuda in cursor.fetchall()]
    return {one.pk: _facts(one, shapes) for one in classes}


def _facts(one: GpuClass, shapes: list[tuple[dict[str, str | None], str | None]]) -> HardwareFacts:
    """A class without labels does not identify its nodes."""
    told = [
        [int(number) for number in cuda.split(".")]
        for labels, cuda in shapes
        if cuda is not None and one.node_labels and all(labels[key] == value for key, value in one.node_labels.items())
    ]
    least = ".".join(str(number) for number in min(told)) if told else None
    return HardwareFacts(one.name, one.vendor, least, has_gpu=one.interface != GpuClass.Interface.NONE)
