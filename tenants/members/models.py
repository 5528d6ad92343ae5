"""Members of a team, invitations and join requests. Part of tenants.models."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower, Now

from accounts.core.actor import Actor
from portal.core.errors import constraint_sentence


def in_teams_of(by: Actor, path: str = "") -> Q:
    """Filters rows whose team is at `path`, such as "tenant__", to the actor's own teams; for a team's token that is
    one team. The only other definitions are in SQL text (workloads.core.queries, workloads.gateway.stream_access).
    """
    teams = Q(**{f"{path}memberships__user": by.user_id or 0})
    return teams & Q(**{f"{path}slug": by.confined_to}) if by.confined_to else teams


class MembershipQuerySet(models.QuerySet["Membership"]):
    def of(self, by: Actor) -> MembershipQuerySet:
        """The actor's own memberships."""
        found = self.filter(user=by.user_id or 0)
        return found.filter(tenant__slug=by.confined_to) if by.confined_to else found


class Membership(models.Model):
    class Role(models.TextChoices):
        OWNER = "owner", "owner"
        MANAGER = "manager", "manager"
        MEMBER = "member", "member"
        VIEWER = "viewer", "viewer"

    tenant = models.ForeignKey("tenants.Tenant", on_delete=models.CASCADE, related_name="memberships", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role)
    since = models.DateTimeField(db_default=Now(), editable=False)
    # A group of the issuer gave this membership and also removes it; the others were given by hand.
    by_group = models.BooleanField(default=False, db_default=False)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint("tenant", "user", name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user_id} is {self.role} of {self.tenant_id}"


constraint_sentence("membership_once", "already_member", "This person is already a member of the team.", field="user")


class Invitation(models.Model):
    """An invitation of an email address without an account. The person who signs in with that address may accept."""

    class State(models.TextChoices):
        PENDING = "pending", "pending"
        ACCEPTED = "accepted", "accepted"
        DECLINED = "declined", "declined"
        REVOKED = "revoked", "revoked"

    TRANSITIONS = {State.PENDING: {State.ACCEPTED, State.DECLINED, State.REVOKED}}

    tenant = models.ForeignKey("tenants.Tenant", on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField(max_length=254)
    role = models.CharField(max_length=10, choices=Membership.Role)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    invited_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint("tenant", "email", condition=Q(state="pending"), name="one_pending_invitation"),
            models.CheckConstraint(condition=Q(email=Lower("email")), name="invitation_email_lower_case"),
        ]

    def __str__(self) -> str:
        return f"invitation for {self.email}"


constraint_sentence(
    "one_pending_invitation",
    "already_invited",
    "This address already has an invitation. Revoke it first.",
    field="email",
)


class JoinRequest(models.Model):
    """A person requests to join a team; its owners and managers answer."""

    class State(models.TextChoices):
        PENDING = "pending", "pending"
        ACCEPTED = "accepted", "accepted"
        DECLINED = "declined", "declined"
        WITHDRAWN = "withdrawn", "withdrawn"

    TRANSITIONS = {State.PENDING: {State.ACCEPTED, State.DECLINED, State.WITHDRAWN}}

    tenant = models.ForeignKey("tenants.Tenant", on_delete=models.CASCADE, related_name="join_requests")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="join_requests")
    message = models.CharField(max_length=300, blank=True, default="")
    asked_at = models.DateTimeField(db_default=Now(), editable=False)
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        ordering = ["id"]
        verbose_name = "request to join"
        constraints = [
            models.UniqueConstraint("tenant", "user", condition=Q(state="pending"), name="one_pending_join_request")
        ]

    def __str__(self) -> str:
        return f"request of {self.user_id} to join {self.tenant_id}"


constraint_sentence(
    "one_pending_join_request", "already_asked", "You already have a pending request to join this team."
)
