"""Users, their staff roles and tokens, the record of actions (Event) and how people are notified: emails
(Delivery), notices, preferences.
"""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.db.models.functions import Lower, Now

from portal.core.due import Due
from portal.core.errors import constraint_sentence
from portal.core.hints import BACKGROUND


class Role(models.TextChoices):
    """Staff roles. What an approver may decide is said by tenants.ApproverFor."""

    APPROVER = "approver", "approver"
    OPERATOR = "operator", "operator"
    AUDITOR = "auditor", "auditor"
    ADMIN = "admin", "admin"


class Scope(models.TextChoices):
    """What a token may do at most; never more than its owner may at that moment."""

    READ = "read", "read"
    LAUNCH = "launch", "launch and stop workloads"
    REQUEST = "request", "request quota"
    DECIDE = "decide", "decide requests"
    ADMIN = "admin", "administer"


class UserManager(BaseUserManager["User"]):
    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email=(username or "").lower())

    def create_user(self, *, email: str, name: str, password: str | None = None, **fields: Any) -> User:
        """The email counts as verified, since the account's creator vouches for it: invitations may be accepted."""
        user = self.model(email=email.lower(), name=name, **fields)
        user.set_password(password)
        with transaction.atomic(using=self._db):
            user.save(using=self._db)
            user.emailaddress_set.create(email=user.email, verified=True, primary=True)
        return user

    def create_superuser(self, *, email: str, name: str, password: str | None = None, **fields: Any) -> User:
        """The break-glass account, for `manage.py createsuperuser`: each sign-in with it is reported to all
        administrators. It has every role, since users can give only roles that they have; it decides no class.
        """
        roles = [str(role) for role in Role]
        return self.create_user(email=email, name=name, password=password, is_superuser=True, roles=roles, **fields)


OPENS_ADMIN = frozenset({Role.OPERATOR, Role.ADMIN, Role.AUDITOR})


class User(AbstractBaseUser, PermissionsMixin):
    email = models.EmailField(max_length=254, unique=True)
    name = models.CharField(max_length=80)
    is_active = models.BooleanField(default=True)
    roles = ArrayField(models.CharField(max_length=10, choices=Role), default=list, blank=True)
    # Those of `roles` that the issuer's groups give and remove. Administrators gave the others.
    group_roles = ArrayField(models.CharField(max_length=10, choices=Role), default=list, db_default=[], blank=True)
    joined_at = models.DateTimeField(db_default=Now(), editable=False)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = ["name"]
    objects: ClassVar[UserManager] = UserManager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(email=Lower("email")), name="user_email_lower_case"),
            models.CheckConstraint(
                condition=models.Q(roles__contained_by=[str(r) for r in Role]), name="user_roles_known"
            ),
        ]
        # Few accounts are suspended. Without this index, every approver's inbox would read all accounts to find them.
        indexes = [models.Index("id", condition=models.Q(is_active=False), name="user_suspended")]

    def __str__(self) -> str:
        return self.name

    def get_session_auth_hash(self) -> str:
        """Ends sessions when the password changes. Django's is keyed by SECRET_KEY, whose replacement would end them
        too; here the signature of the cookie is what needs that key (ADR 44).
        """
        return hashlib.sha256(self.password.encode()).hexdigest()

    def has_role(self, role: Role) -> bool:
        return role in self.roles

    @property
    def is_staff(self) -> bool:
        """May open the Django admin (operators, auditors, admins); policies decide what each of them may change there.
        A separate column would duplicate the roles, and no page could set it.
        """
        return self.is_superuser or not OPENS_ADMIN.isdisjoint(self.roles)


constraint_sentence("accounts_user_email_key", "email_taken", "This email address is already in use.", field="email")


class Identity(models.Model):
    """The account of an issuer's subject. A subject is unique and never changes; an email may change or be reused."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="identities", db_index=False)
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    since = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name_plural = "identities"
        constraints = [
            models.UniqueConstraint("issuer", "subject", name="identity_once"),
            models.UniqueConstraint("user", "issuer", name="one_identity_of_an_issuer"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} at {self.issuer}"


class ApiToken(models.Model):
    """Acts as `user`; with a `tenant`, only in that team. Only the SHA-256 of its secret is stored; `prefix` identifies
    it in lists and logs.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=60)
    prefix = models.CharField(max_length=12, unique=True)
    digest = models.CharField(max_length=64)
    # Slug of the team that the token belongs to; "" for a personal token.
    tenant = models.CharField(max_length=40, blank=True, default="", db_default="")
    scopes = ArrayField(models.CharField(max_length=10, choices=Scope))
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    # Not a column: accounts/api_tokens/queries.py reads it with the token of each request.
    owner_has_second_factor = False

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "user", "name", condition=models.Q(revoked_at=None, tenant=""), name="token_name_once"
            ),
            models.UniqueConstraint(
                "tenant",
                "name",
                condition=models.Q(revoked_at=None) & ~models.Q(tenant=""),
                name="team_token_name_once",
            ),
            models.CheckConstraint(
                condition=models.Q(scopes__contained_by=[str(s) for s in Scope]), name="token_scopes_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


constraint_sentence(
    "token_name_once",
    "name_taken",
    "You already have a token with this name. Revoke it first, or choose another name.",
    field="name",
)
constraint_sentence(
    "team_token_name_once",
    "name_taken",
    "The team already has a token with this name. Revoke it first, or choose another name.",
    field="name",
)


class KeptAnswer(models.Model):
    """The stored response to a call with an Idempotency-Key, for replays (accounts/rest/idempotency.py). `call`: a
    keyed digest of the call.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=200)
    call = models.CharField(max_length=64)
    at = models.DateTimeField(db_default=Now(), editable=False, db_index=True)
    status = models.PositiveSmallIntegerField(db_default=0, default=0)
    location = models.CharField(max_length=500, blank=True, default="", db_default="")
    body = models.TextField(blank=True, default="", db_default="")

    class Meta:
        constraints = [models.UniqueConstraint("user", "key", name="key_once")]

    def __str__(self) -> str:
        return f"answer to {self.key} of {self.user_id}"


class Event(models.Model):
    """Who did what on which row, from where. Append-only: a trigger refuses UPDATE, DELETE and TRUNCATE.

    Users, teams and rows are plain values, since events are kept after they are deleted.
    """

    at = models.DateTimeField(db_default=Now(), editable=False)
    actor_id = models.BigIntegerField(null=True)
    actor = models.CharField(max_length=120)
    via = models.CharField(max_length=40)
    verb = models.CharField(max_length=60)
    tenant = models.CharField(max_length=63, blank=True, default="")
    row = models.CharField(max_length=120)
    name = models.CharField(max_length=120, blank=True, default="")
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    request_id = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "-id"], name="event_of_tenant"),
            models.Index(fields=["row", "-id"], name="event_of_row"),
            models.Index(fields=["actor_id", "-id"], name="event_of_actor"),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.verb} {self.name or self.row}"


class Delivery(Due):
    """One message to one person about one event: created in the event's transaction, sent by a worker (outbox).

    The recipient is a `user`, or an `address` without an account.
    """

    class Channel(models.TextChoices):
        MAIL = "mail", "mail"

    event = models.ForeignKey(Event, on_delete=models.DO_NOTHING, related_name="deliveries", db_index=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="deliveries", null=True, blank=True)
    address = models.EmailField(max_length=254, blank=True, default="")
    channel = models.CharField(max_length=10, choices=Channel, default=Channel.MAIL)
    subject = models.CharField(max_length=150)
    body = models.TextField(max_length=4000)
    sent_at = models.DateTimeField(null=True, blank=True)

    queue = BACKGROUND
    is_in_cluster = False

    class Meta(Due.Meta):
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint("event", "user", "address", "channel", name="delivery_once", nulls_distinct=False),
            models.CheckConstraint(
                condition=models.Q(user=None) ^ models.Q(address=""), name="delivery_to_user_or_address"
            ),
        ]
        # Those that were sent long ago are deleted (desk/retention).
        indexes = [
            *Due.Meta.indexes,
            models.Index(fields=["sent_at"], condition=models.Q(sent_at__isnull=False), name="delivery_sent"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} to {self.user_id or self.address}"


class NoticeKind(models.TextChoices):
    """What a notice is about: people choose for each of them how they are notified. The labels are for them."""

    WAITING = "waiting", "Something waits for you"
    APPROVED = "approved", "A request was approved"
    DENIED = "denied", "A request was denied"
    MENTION = "mention", "You were mentioned"
    COMMENT = "comment", "Comments and questions on a request"
    STARTED = "started", "A queued workload started"
    PREEMPTED = "preempted", "A workload was interrupted, or is ready again"
    STOPPED = "stopped", "A workload was stopped or changed"
    EXPIRING = "expiring", "Something expires or expired"
    JOIN = "join", "Join requests and invitations"
    TEAM = "team", "Your teams, roles and quota"
    ANNOUNCED = "announced", "Announcements of the operators"
    ACCOUNT = "account", "Your account, its security and its rights"


class NoticeChannel(models.TextChoices):
    """Each includes the next: an email is also a notice."""

    MAIL = "mail", "Email"
    PAGE = "page", "Only here"
    OFF = "off", "Off"


class Notice(models.Model):
    """A line in a person's list of notices, written with the event. Its text does not change afterwards. `at` is in the
    future for a reminder that is not due yet.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="notices", db_index=False)
    event = models.ForeignKey(Event, on_delete=models.DO_NOTHING, related_name="notices")
    kind = models.CharField(max_length=10, choices=NoticeKind)
    at = models.DateTimeField(db_default=Now(), editable=False)
    subject = models.CharField(max_length=150)
    # The path of the page in this portal; "" for none.
    link = models.CharField(max_length=300, blank=True, default="")
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["user", "-at", "-id"], name="notice_of_user"),
            # Counted on every page.
            models.Index(fields=["user", "at"], condition=models.Q(read_at=None), name="notice_unread"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} to {self.user_id}"


class NoticePreference(models.Model):
    """A person's choice for a kind of notices, only where it differs from the default."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="notice_preferences", db_index=False)
    kind = models.CharField(max_length=10, choices=NoticeKind)
    channel = models.CharField(max_length=10, choices=NoticeChannel)

    class Meta:
        constraints = [models.UniqueConstraint("user", "kind", name="notice_preference_once")]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.kind} by {self.channel}"
