"""The adoption of an existing namespace by a team. Part of operations.models."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from portal.core.due import Due
from portal.core.hints import BACKGROUND


class Adoption(Due):
    """`findings`: what the worker found in the namespace and what becomes of it, {effect, code, kind, name, text} each;
    [] while `read_at` is None. `consent`: the value of the namespace's label gpu-portal/adopt, without which nothing
    else is read. `accepted`: the losses that the owner has accepted, [code, kind, name] each.
    """

    class State(models.TextChoices):
        READING = "reading", "waiting for the cluster"
        PROPOSED = "proposed", "waiting for the owner"
        ACCEPTED = "accepted", "accepted"
        ADOPTED = "adopted", "adopted"
        UNDOING = "undoing", "being undone"
        UNDONE = "undone", "undone"
        WITHDRAWN = "withdrawn", "withdrawn"

    namespace = models.OneToOneField("tenants.Namespace", on_delete=models.PROTECT, related_name="+")
    proposed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    proposed_at = models.DateTimeField(db_default=Now(), editable=False)
    read_at = models.DateTimeField(null=True, blank=True)
    findings = models.JSONField(default=list, db_default=[], blank=True)
    consent = models.CharField(max_length=63, blank=True, default="", db_default="")
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    accepted_at = models.DateTimeField(null=True, blank=True)
    accepted = models.JSONField(default=list, db_default=[], blank=True)
    adopted_at = models.DateTimeField(null=True, blank=True)
    undo_requested_at = models.DateTimeField(null=True, blank=True)
    undone_at = models.DateTimeField(null=True, blank=True)

    queue = BACKGROUND

    class Meta(Due.Meta):
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"the adoption of {self.namespace.name_in_cluster}"

    @property
    def state(self) -> State:
        if self.namespace.wanted == "closed" and not self.adopted_at:
            return self.State.WITHDRAWN
        if self.undone_at or self.namespace.gone_at:
            return self.State.UNDONE
        if self.undo_requested_at:
            return self.State.UNDOING
        if self.adopted_at:
            return self.State.ADOPTED
        if self.accepted_at:
            return self.State.ACCEPTED
        return self.State.PROPOSED if self.read_at else self.State.READING
