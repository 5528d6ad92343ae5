"""Images that a launch names by reference, under a prefix that the team may use."""

from __future__ import annotations

from catalog.images import image_references
from portal.core.errors import Refusal
from tenants.class_access.image_prefixes import policy as image_prefixe_policy
from tenants.class_access.image_prefixes.queries import prefixes_of
from tenants.models import Namespace
from workloads.launch import queries as launch_queries
from workloads.launch.types import LaunchSpec
from workloads.models import Workload


def unknown_image_refusal(namespace: Namespace, wanted: LaunchSpec) -> Refusal:
    """Returns why the image is unknown: it is neither in the catalog nor under a prefix of the team. At most two
    queries.
    """
    if image_references.is_reference(wanted.image):
        found = image_prefixe_policy.may_use_image(wanted.image, prefixes_of(namespace.tenant_id))
        if found is not None:
            return found
    known = ", ".join(launch_queries.image_names(wanted.kind))[:200] or "none yet"
    text = f"'{wanted.image[:80]}' is not an image for a {wanted.kind}. Available: {known}."
    return Refusal("unknown_image", text, "image")


def custom_image_refusal(workload: Workload) -> Refusal | None:
    """Checks again the image that the workload was declared with. No query for an image of the catalog,
    otherwise one.
    """
    if not workload.own_image:
        return None
    return image_prefixe_policy.may_use_image(workload.image, prefixes_of(workload.tenant_id))
