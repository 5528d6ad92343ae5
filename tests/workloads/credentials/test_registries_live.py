"""A private image on the real control plane: its pull Secret is created, follows the credentials and is deleted."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from accounts.core.actor import Actor
from accounts.models import User
from cluster.models import AppliedObject
from devcluster.client.kube import Api
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.class_access.image_prefixes import actions as image_prefixe_actions
from tenants.models import Namespace
from tests.support.cluster.worker import Worker
from tests.support.waiting import wait_until
from tests.workloads.cases.live import on_nodes
from tests.workloads.cases.run_state import shown
from tests.workloads.cases.situations import as_written
from tests.workloads.cases.situations_nodes import ON_NODES
from tests.workloads.cases.steps_followed import help_of
from workloads.credentials.registries import actions as registry_actions
from workloads.credentials.registries.actions import RegistryLogin
from workloads.launch import actions
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("provisioned", "watcher")]
HOST = "registry.example.org"
SECRET = "train-1-pull"


@pytest.fixture
def own(job: LaunchSpec, provisioned: Any, olga: User) -> LaunchSpec:
    image_prefixe_actions.allow_prefix("team-a", f"{HOST}/vision/", by=Actor(olga, via="page"))
    return replace(job, image=f"{HOST}/vision/train:7")


def sign_in_of(admin: Api, namespace: str) -> tuple[str, str, str] | None:
    """Returns type, user and password as the cluster stores them."""
    found = admin.find("v1/secrets", SECRET, namespace=namespace)
    if found is None:
        return None
    config = json.loads(base64.b64decode(found["data"][".dockerconfigjson"]))
    one = config["auths"][HOST]
    return found["type"], one["username"], one["password"]


def test_the_secret_of_a_run_follows_what_the_team_keeps_and_goes_with_the_run(
    namespace_a: Namespace, own: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api, unique: str
) -> None:
    where, kind = namespace_a.name, "kubernetes.io/dockerconfigjson"
    registry_actions.put_login("team-a", HOST, RegistryLogin("robot", f"one-{unique}"), by=by_alice)
    actions.launch("team-a", own, by=by_alice)
    worker(lambda: sign_in_of(admin, where) == (kind, "robot", f"one-{unique}"))
    job = admin.get("batch/v1/jobs", "train-1", namespace=where)
    pod = job["spec"]["template"]["spec"]
    assert pod["imagePullSecrets"] == [{"name": SECRET}]
    assert pod["containers"][0]["image"] == own.image
    owners = admin.get("v1/secrets", SECRET, namespace=where)["metadata"]["ownerReferences"]
    assert [one["uid"] for one in owners] == [job["metadata"]["uid"]]

    # The fence accepted the pod with this Secret.
    def pods() -> list[dict[str, Any]]:
        return [one for one in admin.list("v1/pods", namespace=where) if one["metadata"]["name"].startswith("train-1-")]

    worker(lambda: [one["spec"]["imagePullSecrets"] for one in pods()] == [[{"name": SECRET}]])

    registry_actions.put_login("team-a", HOST, RegistryLogin("robot", f"two-{unique}"), by=by_alice)
    worker(lambda: sign_in_of(admin, where) == (kind, "robot", f"two-{unique}"))
    registry_actions.delete_login("team-a", HOST, by=by_alice)
    worker(lambda: sign_in_of(admin, where) is None)
    registry_actions.put_login("team-a", HOST, RegistryLogin("robot", f"three-{unique}"), by=by_alice)
    worker(lambda: sign_in_of(admin, where) == (kind, "robot", f"three-{unique}"))

    actions.stop("team-a", "train", by=by_alice)
    worker(lambda: sign_in_of(admin, where) is None and not AppliedObject.objects.filter(name=SECRET).exists())


def test_it_goes_with_the_job_whoever_deleted_that(
    namespace_a: Namespace, own: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    registry_actions.put_login("team-a", HOST, RegistryLogin("robot", "word"), by=by_alice)
    actions.launch("team-a", own, by=by_alice)
    worker(lambda: sign_in_of(admin, namespace_a.name) is not None)

    # No worker runs now: the cluster's garbage collector deletes it.
    admin.delete("batch/v1/jobs", "train-1", namespace=namespace_a.name)
    wait_until(lambda: sign_in_of(admin, namespace_a.name) is None)


def test_without_credentials_there_is_none_and_the_run_goes_its_way(
    namespace_a: Namespace, own: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    actions.launch("team-a", own, by=by_alice)
    worker(lambda: admin.find("batch/v1/jobs", "train-1", namespace=namespace_a.name) is not None)
    assert sign_in_of(admin, namespace_a.name) is None
    registry_actions.put_login("team-a", HOST, RegistryLogin("robot", "word"), by=by_alice)
    worker(lambda: sign_in_of(admin, namespace_a.name) is not None)


def test_a_refused_pull_says_whether_the_team_signs_in(
    namespace_a: Namespace, own: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    kubelet = ScriptedKubelet(admin)

    def reason() -> tuple[str, str]:
        status = shown("train").status
        return str(status.phase), status.reason

    with kubelet.claim(namespace_a.name):
        actions.launch("team-a", own, by=by_alice)
        worker(lambda: on_nodes(admin, namespace_a.name) == ["train"])
        kubelet.pull_error(kubelet.bound(namespace_a.name, labels="gpu-portal/workload=train"))
        worker(lambda: reason() == ("blocked", "no_credentials"))
        registry_actions.put_login("team-a", HOST, RegistryLogin("robot", "wrong"), by=by_alice)
        worker(lambda: reason() == ("blocked", "credentials_refused"))
        refused = help_of(by_alice, "train")
        as_written(ON_NODES["credentials refused"], shown("train").status, refused)
        assert refused.steps[0].href == "/teams/team-a/images"
        registry_actions.delete_login("team-a", HOST, by=by_alice)
        worker(lambda: reason() == ("blocked", "no_credentials"))
