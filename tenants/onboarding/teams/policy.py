"""Who may create teams, and which short names are possible. Pure."""

from __future__ import annotations

from accounts.core.actor import Actor
from portal.core.errors import Refusal

SLUG_TAKEN = Refusal(
    "slug_taken",
    "A team of this short name already exists; choose another, or ask its owners to let you join.",
    "slug",
    status=409,
)

# Namespaces that Kubernetes, Kueue and the portal use themselves.
RESERVED_SLUGS = ("default", "gpu-portal", "kueue", "kube", "openshift", "system")


def may_create_tenant(by: Actor) -> Refusal | None:
    if by.operates:
        return None
    return Refusal("not_allowed", "Teams are set up by the operators of the portal; ask them for one.", status=403)


def slug_refusal(slug: str) -> Refusal | None:
    """A tenant's short name becomes a namespace's."""
    if slug in RESERVED_SLUGS or slug.startswith(("kube-", "kueue-", "gpu-portal-", "openshift-")):
        return Refusal("reserved", f"'{slug}' is the name of a part of the system; choose another.", "slug")
    allowed = "abcdefghijklmnopqrstuvwxyz0123456789-"
    if not 1 <= len(slug) <= 40 or slug.strip("-") != slug or "--" in slug or any(c not in allowed for c in slug):
        text = f"Use lower-case letters, digits and single hyphens, up to 40 characters; '{slug[:60]}' is not possible."
        return Refusal("bad_name", text, "slug")
    return None
