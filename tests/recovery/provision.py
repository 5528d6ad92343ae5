"""Run as a process with web's rights: a team with a grant, as if its request had been decided just now.

python -m tests.recovery.provision cluster COHORT
python -m tests.recovery.provision team NAME CLASS UNITS
python -m tests.recovery.provision viewer NAME
python -m tests.recovery.provision people NAME
python -m tests.recovery.provision hold NAME "nothing"|"a query"
"""

from __future__ import annotations

import json
import os
import sys

import django


def main(what: str, *rest: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    {"cluster": settle, "team": team, "viewer": viewer, "people": people, "hold": hold}[what](*rest)


def settle(cohort: str, slug: str) -> None:
    from accounts.core.actor import system_actor
    from accounts.models import Role, User
    from catalog.classes.actions import activate
    from cluster.models import Cluster
    from tests.support.rows import make

    cluster = Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost", cohort=cohort)
    assert User.objects.count() == 0
    make.user("Olga", roles=[Role.OPERATOR, Role.ADMIN])
    draft = make.gpu_class(cluster, slug=slug, life_cycle="draft")
    activate(draft.pk, by=system_actor("test"))


def team(name: str, slug: str, units: str) -> None:
    from django.db import transaction

    from catalog.models import GpuClass
    from cluster.models import Cluster
    from portal.core.due import touch
    from tenants.models import Namespace
    from tests.support.rows import make

    with transaction.atomic():
        tenant = make.tenant(Cluster.objects.get(), slug=name, namespace=name)
        make.grant(tenant, GpuClass.objects.get(slug=slug), units=int(units))
        touch(Namespace, tenant.namespaces.get().pk)


def viewer(name: str) -> None:
    """Prints the token of a member who may only read."""
    from accounts.api_tokens.actions import create_token
    from accounts.core.actor import Actor
    from tenants.models import Tenant
    from tests.support.rows import make

    person = make.user(f"viewer-of-{name}")
    make.member(Tenant.objects.get(slug=name), person)
    _row, text = create_token(name="looks", scopes=["read"], expires_in_days=1, by=Actor(user=person, via="page"))
    sys.stdout.write(f"{text}\n")


def people(name: str) -> None:
    """Prints a member with a password, and the tokens of this member and of an approver, as JSON."""
    from accounts.api_tokens.actions import create_token
    from accounts.core.actor import Actor
    from accounts.models import User
    from catalog.models import Image
    from tenants.models import Membership, Tenant
    from tests.support.rows import make

    def token(of: User, *scopes: str) -> str:
        by = Actor(user=of, via="page")
        return create_token(name="looks", scopes=list(scopes), expires_in_days=1, by=by)[1]

    Image.objects.create(name="python", reference="docker.io/library/python:3.14-slim", kind="job")
    member, approver = make.user(f"member-of-{name}"), make.approver(f"approver-of-{name}")
    make.member(Tenant.objects.get(slug=name), member, Membership.Role.OWNER)
    found = {"email": member.email, "password": make.PASSWORD, "member": token(member, "read", "launch", "request")}
    sys.stdout.write(f"{json.dumps(found | {'approver': token(approver, 'read', 'decide')})}\n")


def hold(name: str, doing: str) -> None:
    """Changes a row and keeps its transaction open until a line arrives; then prints what came of it."""
    from django.db import DatabaseError, connection, transaction

    from portal.core.due import touch
    from tenants.models import Namespace

    try:
        with transaction.atomic():
            touch(Namespace, Namespace.objects.get(name=name).pk)
            sys.stdout.write("held\n")
            sys.stdout.flush()
            if doing == "a query":
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_sleep(19)")
            sys.stdin.readline()
    except DatabaseError as error:
        sys.stdout.write(f"{type(error).__name__}\n")
    else:
        sys.stdout.write("done\n")


if __name__ == "__main__":
    main(sys.argv[1], *sys.argv[2:])
