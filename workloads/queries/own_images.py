"""Images that a launch names by reference, below a prefix that is allowed to the team."""

from __future__ import annotations

from catalog import references
from portal.errors import Refusal
from tenants import image_policy
from tenants.models import Namespace
from tenants.queries.image_prefixes import prefixes
from workloads.models import Workload
from workloads.policy import Wanted
from workloads.queries import launching


def refusal(namespace: Namespace, wanted: Wanted) -> Refusal:
    """Why nobody knows this image: neither the catalog nor a prefix of the team. Two queries at most."""
    if references.is_reference(wanted.image):
        found = image_policy.may_use(wanted.image, prefixes(namespace.tenant_id))
        if found is not None:
            return found
    known = ", ".join(launching.names_of_images(wanted.kind))[:200] or "none yet"
    text = f"'{wanted.image[:80]}' is not an image for a {wanted.kind} here. Known: {known}."
    return Refusal("unknown_image", text, "image")


def may_start(workload: Workload) -> Refusal | None:
    """Again, with the image that it was declared with. No query for one of the catalog, else one."""
    if not workload.own_image:
        return None
    return image_policy.may_use(workload.image, prefixes(workload.tenant_id))
