"""Who may create teams, and which short names are possible. Pure."""

from __future__ import annotations

from accounts.core.actor import Actor
from portal.core.errors import Refusal

SLUG_TAKEN = Refusal(
    "slug_taken",
    "A team with this short name already exists. Choose another short name, or request to join that team.",
    "slug",
    status=409,
)

# Namespaces that Kubernetes, Kueue and the portal use themselves.
RESERVED_SLUGS = ("default", "gpu-portal", "kueue", "kube", "openshift", "system")


def may_create_tenant(by: Actor) -> Refusal | None:
    if by.operates:
        return None
    return Refusal("not_allowed", "Only operators can create teams. Contact an operator.", status=403)


def slug_refusal(slug: str) -> Refusal | None:
    """A team's short name becomes the name of its namespace."""
    if slug in RESERVED_SLUGS or slug.startswith(("kube-", "kueue-", "gpu-portal-", "openshift-")):
        return Refusal("reserved", f"'{slug}' is reserved for the system. Choose another short name.", "slug")
    allowed = "abcdefghijklmnopqrstuvwxyz0123456789-"
    if not 1 <= len(slug) <= 40 or slug.strip("-") != slug or "--" in slug or any(c not in allowed for c in slug):
        text = f"'{slug[:60]}' is not valid. Use 1 to 40 lower-case letters, digits and single hyphens."
        return Refusal("bad_name", text, "slug")
    return None
