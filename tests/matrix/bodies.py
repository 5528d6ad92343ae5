"""Request bodies, by the name that the table uses. The API takes them as JSON, pages take them as a form."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts.models import NoticeKind
from catalog.models import GpuClass, Image
from desk.catalog.editor.actions import version_of_image
from tenants.models import QuotaLine
from tests.catalog.interconnect.outputs import nccl
from tests.matrix.world import World
from tests.support.rows.class_form import class_form


def body(name: str, world: World, values: dict[str, str]) -> dict[str, Any]:
    """`values` are the values in the address."""
    slug, now = world.gpu_class.slug, timezone.now()
    run = {"kind": "job", "gpu_class": slug, "units": 1, "image": "python", "command": ["true"]}
    bodies: dict[str, dict[str, Any]] = {
        "": {},
        "budget": {"amount": "90.00", "at_limit": "stop"},
        "banner": {"text": "Tomorrow.", "until": None},
        "observe-only": {"wanted": True},
        "adoption": {
            "namespace": "found",
            "slug": "found",
            "name": "Found",
            "owner": "colin@example.org",
        },
        "adoption accepted": {"accepted": ["network Pod all"]},
        "announcement": {
            "title": "Maintenance",
            "body": "Tomorrow.",
            "audience": "everybody",
            "ends_at": (now + timedelta(days=2)).isoformat(),
        },
        "announcement end": {"ends_at": (now + timedelta(days=3)).isoformat()},
        "mig set": {"set": "NVIDIA-A100-SXM4-80GB:80:mixed", "wanted": {"1g.10gb": 1}},
        "maintenance": {
            "nodes": ["a100-2"],
            "kind": "hardware",
            "reason": "A fan.",
            "starts_at": (now + timedelta(days=1)).isoformat(),
            "ends_at": (now + timedelta(days=2)).isoformat(),
        },
        "measurement": {"output": nccl("371.42", gpus=2)},
        "withdrawal": {"because": "Of another node."},
        "token": {"name": "new", "scopes": ["admin"], "expires_in_days": 1},
        "deputy": {
            "email": "colin@example.org",
            "starts_at": (now + timedelta(days=20)).isoformat(),
            "ends_at": (now + timedelta(days=30)).isoformat(),
        },
        "join": {"team": "team-a"},
        "notices": {"ids": [2**40]},  # nobody's
        "notice choices": {"approved": "off"},
        "team request": {"name": "Vision", "slug": "vision", "purpose": "To see.", "bundle": "Small"},
        "team denied": {"approve": False, "reason": "No."},
        "suspend": {"wanted": "suspended", "because": "The bill."},
        "prefix": {"prefix": "registry.example.org/more/"},
        "declined": {"accept": False, "reason": "We are full."},
        "member": {"email": "dave@example.org", "role": "viewer"},
        "role": {"role": "viewer"},
        "request": {
            "team": values.get("tenant"),
            "justification": "For the course.",
            "lines": [{"gpu_class": slug, "units": 50, "ends_at": (now + timedelta(days=40)).isoformat()}],
        },
        "comment": {"text": "Soon?"},
        "launch": {"name": "new", **run},
        "declare": {**run, "kind": "notebook", "image": "minimal", "command": [], "units": 2},
        "extend": {"hours": 1},
        "keep": {"hours": 1, "reason": "A demo."},
        "stop idle": {"reason": "Others wait."},
        "visibility": {"visibility": "team"},
        "at drain": {"at_drain": "stop"},
        "sharing": {"shares_notebooks": True},
        "priority": {"priority": "production", "because": "The demo."},
        "secret": {"value": "s3cret"},
        "new person": {"email": "new@example.org", "name": "New"},
        "because": {"because": "Back."},
        "person suspended": {"suspended": True, "because": "Left."},
        "registry": {"username": "robot", "password": "s3cret"},
    }
    if name == "denied":
        line = QuotaLine.objects.filter(request_id=values["pk"]).first()
        return {"lines": [{"id": line.pk if line else 1, "approve": False, "reason": "No cards."}]}
    return bodies[name] if name in bodies else form(name, world, values)


def form(name: str, world: World, values: dict[str, str]) -> dict[str, Any]:
    slug, today = world.gpu_class.slug, timezone.localdate()
    bodies: dict[str, dict[str, Any]] = {
        "sharing form": {"shares_notebooks": "on"},
        "theme": {"theme": "dark", "next": "/"},
        "announcement form": {
            "title": "Maintenance",
            "body": "Tomorrow.",
            "severity": "warning",
            "audience": "everybody",
            "starts": "2020-01-01T00:00",
            "until": "2090-01-01T00:00",
        },
        "announcement end form": {"until": "2090-01-01T00:00"},
        "banner form": {"text": "Tomorrow."},
        "observe-only form": {"to": "on"},
        "adoption form": {
            "namespace": "found",
            "slug": "found",
            "name": "Found",
            "owner": "colin@example.org",
        },
        "maintenance form": {
            "nodes": ["a100-2"],
            "kind": "hardware",
            "reason": "A fan.",
            "holds_from": today,
            "starts_at": today + timedelta(days=1),
            "ends_at": today + timedelta(days=2),
            "stuck_minutes": 30,
        },
        "notice form": {"notice": 2**40},
        "notice preferences": {kind: "off" for kind in NoticeKind if kind != "account"},
        "ticked": {"request": world.things["request"]["own"]["pk"], "reason": "So it is."},
        "retire form": {"to": "retiring", "message": "Too old."},
        "new image form": {"name": "new", "reference": "registry.example.org/new:1", "kind": "job"},
        "up": {"to": "up"},
        "hold": {"to": "held", "reason": "The demo."},
        "suspend team": {"to": "suspended", "because": "The bill."},
        "token form": {"name": "new", "scopes": ["read"], "expires_in_days": 30},
        "deputy form": {
            "email": "colin@example.org",
            "starts_at": today + timedelta(days=20),
            "ends_at": today + timedelta(days=30),
        },
        "team form": {"name": "Vision", "slug": "vision", "purpose": "To see.", "bundle": "Small"},
        "decline": {"answer": "decline"},
        "join form": {"team": "team-a"},
        "team denied form": {"decision": "deny", "reason": "No.", f"units-{slug}": 1},
        "declined form": {"answer": "decline", "reason": "We are full."},
        "suspend form": {"to": "suspended", "because": "The bill.", "confirm": values.get("tenant")},
        "reclaim form": {"units": 1, "from_date": today + timedelta(days=9), "justification": "The course."},
        "request form": {
            f"units-{slug}": 50,
            "justification": "For the course.",
            "from_date": today,
            "until_date": today + timedelta(days=40),
        },
        "launch form": {"name": "new", "kind": "notebook", "gpu_class": slug, "units": 1, "image": "minimal"},
        "import form": {
            "source": "csv",
            "text": "kind,team,name,email,role,class,units,until\nteam,new-one,New,ada@example.org,,,,\n",
        },
        "registry form": {"registry": "registry.example.org", "username": "robot", "password": "s3cret"},
        "secret form": {"name": "NEW_KEY", "value": "s3cret"},
        "roles form": {"roles": ["approver", "admin"]},
        "new person": {"email": "new@example.org", "name": "New"},
        "suspend person": {"confirm": "ada@example.org", "because": "Left."},
        "because": {"because": "Back."},
        "class form": {"gpu_class": world.things["new class of person"]["own"]["slug"]},
        "class no more": {"gpu_class": slug},
        "confirm": {"confirm": values.get("name")},
        "change form": {"gpu_class": slug, "units": 2, "image": "minimal"},
    }
    if name == "new class form":
        return class_form(GpuClass(name="New", resource="nvidia.com/gpu"), slug="brand-new")
    if name == "class edit form":
        return class_form(GpuClass.objects.filter(slug=values["slug"]).first() or GpuClass(), borrowing_limit=7)
    if name == "image edit form":
        image = Image.objects.filter(pk=values["pk"]).first() or Image()
        kept = {"reference": image.reference, "kind": image.kind, "seen": version_of_image(image)}
        return {**kept, "contents": "Python"}
    if name == "denied form":
        line = QuotaLine.objects.filter(request_id=values["pk"]).first()
        pk = line.pk if line else 1
        return {"decision": "deny", "reason": "No cards.", f"units-{pk}": 2, f"from-{pk}": today, f"until-{pk}": today}
    return bodies[name]
