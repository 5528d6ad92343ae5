"""The apply engine on the real API server, with exactly the worker's rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.apply import applied_objects
from cluster.apply import types as apply_types
from cluster.apply.reconcile import converge, create_once
from cluster.client.errors import ClusterUnavailable
from cluster.client.kube import Kube
from cluster.client.types import ApiObject
from cluster.models import AppliedObject, Cluster
from devcluster.client.kube import Api
from devcluster.faults.api_proxy import ApiProxy
from portal.core.due import Deadline
from tests.cluster.apply.objects import OWNER, limits, namespace, quota, secret


@pytest.fixture
def deadline() -> Deadline:
    return Deadline()


@pytest.fixture
def proxy(services: dict[str, Any], tmp_path: Path) -> Iterator[ApiProxy]:
    """A proxy in front of the API server, with the worker's rights."""
    with ApiProxy(services["kubeconfigs"]["worker"], tmp_path) as proxy:
        yield proxy


@pytest.fixture
def name(unique: str) -> str:
    return f"apply-{unique}"


class MeddledKube(Kube):
    """Calls `meddle` after the API server has applied an object and before the portal reads the answer."""

    meddle: Callable[[], object] = staticmethod(lambda: None)

    def apply(self, manifest: dict[str, Any], *, uid: str = "", dry_run: bool = False) -> ApiObject:
        answer = super().apply(manifest, uid=uid, dry_run=dry_run)
        self.meddle()
        return answer


@pytest.mark.usefixtures("clean_cluster")
class TestConverge:
    def test_a_second_pass_sends_nothing(
        self, kube_worker: Kube, cluster: Cluster, name: str, deadline: Deadline
    ) -> None:
        manifests = [namespace(name), quota(name, pods=3)]
        first = converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        second = converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        assert first.sent == (("Namespace", "", name), ("ResourceQuota", name, "gpu-portal"))
        assert second.sent == ()
        assert second.is_settled

    def test_sending_everything_again_changes_no_resource_version(
        self, kube_worker: Kube, cluster: Cluster, name: str, deadline: Deadline, admin: Api
    ) -> None:
        manifests = [namespace(name), secret(name)]
        converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        before = admin.get("v1/secrets", "key", namespace=name)["metadata"]["resourceVersion"]
        AppliedObject.objects.update(difference={"fields": ["data"]})
        again = converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        once_more = converge(
            kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline
        )
        after_first = admin.get("v1/secrets", "key", namespace=name)["metadata"]["resourceVersion"]
        AppliedObject.objects.update(difference={"fields": ["data"]})
        converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        after_second = admin.get("v1/secrets", "key", namespace=name)["metadata"]["resourceVersion"]
        assert len(again.sent) == 2
        assert once_more.sent == ()
        # The first apply takes over the fields that POST created; from then on nothing moves.
        assert after_second == after_first >= before

    def test_what_is_no_longer_sent_goes_away(
        self, kube_worker: Kube, cluster: Cluster, name: str, deadline: Deadline, admin: Api
    ) -> None:
        wide = quota(name, pods=3)
        wide["spec"]["hard"]["services"] = "2"
        converge(
            kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=[namespace(name), wide], deadline=deadline
        )
        narrow = quota(name, pods=3)
        converge(
            kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=[namespace(name), narrow], deadline=deadline
        )
        found = admin.get("v1/resourcequotas", "gpu-portal", namespace=name)
        assert found["spec"]["hard"] == {"pods": "3"}
        ours = [entry for entry in found["metadata"]["managedFields"] if entry["manager"] == "gpu-portal"]
        assert [entry["operation"] for entry in ours] == ["Apply"]

    def test_an_object_that_was_deleted_is_made_again(
        self, kube_worker: Kube, cluster: Cluster, name: str, deadline: Deadline, admin: Api
    ) -> None:
        manifests = [namespace(name), quota(name, pods=3)]
        converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        admin.delete("v1/resourcequotas", "gpu-portal", namespace=name)
        AppliedObject.objects.filter(kind="ResourceQuota").update(difference={"missing": True})
        converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        made = admin.get("v1/resourcequotas", "gpu-portal", namespace=name)
        row = AppliedObject.objects.get(kind="ResourceQuota")
        assert (row.uid, row.result, row.difference) == (made["metadata"]["uid"], "applied", {})

    def test_what_nobody_wants_any_more_is_deleted(
        self, kube_worker: Kube, cluster: Cluster, name: str, deadline: Deadline, admin: Api
    ) -> None:
        converge(
            kube=kube_worker,
            cluster_id=cluster.pk,
            owner=OWNER,
            manifests=[namespace(name), secret(name)],
            deadline=deadline,
        )
        last = converge(
            kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=[namespace(name)], deadline=deadline
        )
        assert last.deleted == (("Secret", name, "key"),)
        assert admin.find("v1/secrets", "key", namespace=name) is None

    @pytest.mark.parametrize("owner", ["somebody.else.1", ""])
    def test_a_foreign_object_is_reported_and_left_alone(
        self, kube_worker: Kube, cluster: Cluster, name: str, deadline: Deadline, admin: Api, owner: str
    ) -> None:
        converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=[namespace(name)], deadline=deadline)
        admin.create(secret(name, owner=owner))
        before = admin.get("v1/secrets", "key", namespace=name)
        last = converge(
            kube=kube_worker,
            cluster_id=cluster.pk,
            owner=OWNER,
            manifests=[namespace(name), secret(name)],
            deadline=deadline,
        )
        assert last.foreign == (("Secret", name, "key"),)
        assert admin.get("v1/secrets", "key", namespace=name) == before

    def test_an_object_that_somebody_replaced_is_foreign(
        self, kube_worker: Kube, cluster: Cluster, name: str, deadline: Deadline, admin: Api
    ) -> None:
        manifests = [namespace(name), quota(name, pods=3)]
        converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        admin.delete("v1/resourcequotas", "gpu-portal", namespace=name)
        theirs = quota(name, pods=9)
        theirs["metadata"]["labels"] = {}
        admin.create(theirs)
        changed = [namespace(name), quota(name, pods=4)]
        last = converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=changed, deadline=deadline)
        assert last.foreign == (("ResourceQuota", name, "gpu-portal"),)
        assert admin.get("v1/resourcequotas", "gpu-portal", namespace=name)["spec"]["hard"] == {"pods": "9"}

    def test_a_refusal_is_kept_with_its_text_and_not_hammered(
        self, kube_worker: Kube, cluster: Cluster, name: str, deadline: Deadline
    ) -> None:
        bad = quota(name, pods=3)
        bad["spec"]["hard"] = {"pods": "many"}
        manifests = [namespace(name), bad]
        first = converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        second = converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        row = AppliedObject.objects.get(kind="ResourceQuota")
        assert first.refused == second.refused == (("ResourceQuota", name, "gpu-portal"),)
        assert second.sent == ()
        assert row.text

    def test_an_object_whose_change_was_refused_is_still_ours_to_delete(
        self, kube_worker: Kube, cluster: Cluster, name: str, deadline: Deadline, admin: Api
    ) -> None:
        """A refusal says nothing about the existing object: without its recorded uid it would never be deleted."""
        made = [namespace(name), limits(name, least="1")]
        converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=made, deadline=deadline)
        bad = [namespace(name), limits(name, least="5")]
        refused = converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=bad, deadline=deadline)
        last = converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=made[:1], deadline=deadline)
        assert refused.refused == last.deleted == (("LimitRange", name, "gpu-portal"),)
        assert admin.find("v1/limitranges", "gpu-portal", namespace=name) is None

    def test_a_refusal_of_a_name_with_uid_in_it_is_not_taken_for_a_foreign_object(
        self, kube_worker: Kube, cluster: Cluster, name: str, deadline: Deadline
    ) -> None:
        good, bad = quota(name, pods=3), quota(name, pods=-1)
        good["metadata"]["name"] = bad["metadata"]["name"] = "fluid"
        for wanted in (good, bad):
            last = converge(
                kube=kube_worker,
                cluster_id=cluster.pk,
                owner=OWNER,
                manifests=[namespace(name), wanted],
                deadline=deadline,
            )
        assert (last.refused, last.foreign) == ((("ResourceQuota", name, "fluid"),), ())

    def test_a_namespace_that_is_going_away_is_tried_later(
        self, kube_worker: Kube, cluster: Cluster, name: str, deadline: Deadline, admin: Api
    ) -> None:
        blocked = namespace(name)
        converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=[blocked], deadline=deadline)
        held = secret(name)
        held["metadata"] |= {"name": "held", "finalizers": ["gpu-portal.test/hold"]}
        admin.create(held)
        admin.delete("v1/namespaces", name)
        with pytest.raises(ClusterUnavailable):
            converge(
                kube=kube_worker,
                cluster_id=cluster.pk,
                owner=OWNER,
                manifests=[blocked, secret(name)],
                deadline=deadline,
            )
        admin.patch("v1/secrets", "held", {"metadata": {"finalizers": None}}, namespace=name)

    def test_our_own_object_that_is_being_changed_is_tried_later_and_not_called_foreign(
        self, kube_worker: Kube, proxy: ApiProxy, cluster: Cluster, name: str, deadline: Deadline
    ) -> None:
        made, changed = [namespace(name), quota(name, pods=3)], [namespace(name), quota(name, pods=4)]
        converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=made, deadline=deadline)
        through = Kube(str(proxy.kubeconfig))
        proxy.when("apply", "resourcequotas").status(409)
        with pytest.raises(ClusterUnavailable):
            converge(kube=through, cluster_id=cluster.pk, owner=OWNER, manifests=changed, deadline=deadline)
        done = converge(kube=through, cluster_id=cluster.pk, owner=OWNER, manifests=changed, deadline=deadline)
        assert (len(done.sent), done.foreign) == (1, ())

    def test_an_object_that_we_made_again_and_could_not_write_down_is_ours(
        self, kube_worker: Kube, proxy: ApiProxy, cluster: Cluster, name: str, deadline: Deadline, admin: Api
    ) -> None:
        """Its uid is not the recorded one."""
        manifests = [namespace(name), quota(name, pods=3)]
        converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        admin.delete("v1/resourcequotas", "gpu-portal", namespace=name)
        AppliedObject.objects.filter(kind="ResourceQuota").update(difference={"gone": True})
        through = Kube(str(proxy.kubeconfig))
        proxy.when("create", "resourcequotas").drop_answer()
        with pytest.raises(ClusterUnavailable):
            converge(kube=through, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        done = converge(kube=through, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        assert (len(done.sent), done.foreign) == (1, ())

    def test_what_was_repaired_says_what_it_was(
        self, kube_worker: Kube, cluster: Cluster, name: str, deadline: Deadline
    ) -> None:
        manifests = [namespace(name), quota(name, pods=3)]
        converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        difference = {"fields": ["spec.hard.pods"], "manager": "kubectl-edit"}
        AppliedObject.objects.filter(kind="ResourceQuota").update(difference=difference)
        converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        row = AppliedObject.objects.get(kind="ResourceQuota")
        assert (row.result, row.code, row.difference) == ("applied", apply_types.REPAIRED, {})
        assert row.text == "Drift repaired: spec.hard.pods had been changed outside of the portal by kubectl-edit."

    def test_a_difference_that_is_noted_while_its_object_is_sent_is_kept(
        self, proxy: ApiProxy, cluster: Cluster, name: str, deadline: Deadline
    ) -> None:
        """The watcher saw the difference after the API server had done the portal's apply: it is not repaired yet."""
        manifests = [namespace(name), quota(name, pods=3)]
        through = MeddledKube(str(proxy.kubeconfig))
        converge(kube=through, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        AppliedObject.objects.filter(kind="ResourceQuota").update(difference={"fields": ["spec.hard.pods"]})
        through.meddle = lambda: AppliedObject.objects.filter(kind="ResourceQuota").update(difference={"gone": True})
        converge(kube=through, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        assert AppliedObject.objects.get(kind="ResourceQuota").difference == {"gone": True}

    @pytest.mark.parametrize("make", [secret, lambda name: quota(name, pods=1)], ids=["Secret", "ResourceQuota"])
    def test_a_conflict_that_is_not_about_the_name_is_tried_later(
        self,
        proxy: ApiProxy,
        cluster: Cluster,
        name: str,
        deadline: Deadline,
        make: Callable[[str], dict[str, Any]],
    ) -> None:
        """Simultaneous creations were counted against a quota; no foreign object exists."""
        through = Kube(str(proxy.kubeconfig))
        manifests = [namespace(name), make(name)]
        proxy.when("create", manifests[1]["kind"].lower() + "s").status(409)
        with pytest.raises(ClusterUnavailable):
            converge(kube=through, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        done = converge(kube=through, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=deadline)
        assert (len(done.sent), done.foreign) == (1, ())


@pytest.mark.usefixtures("clean_cluster")
class TestCreateOnce:
    def test_creating_twice_is_one_object(
        self, kube_worker: Kube, cluster: Cluster, name: str, deadline: Deadline
    ) -> None:
        converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=[namespace(name)], deadline=deadline)
        first = create_once(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifest=quota(name, pods=1))
        AppliedObject.objects.filter(kind="ResourceQuota").delete()
        second = create_once(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifest=quota(name, pods=1))
        assert (second.uid, second.result) == (first.uid, "applied")

    def test_a_conflict_about_an_object_that_is_not_there_is_tried_later(
        self, kube_worker: Kube, proxy: ApiProxy, cluster: Cluster, name: str, deadline: Deadline
    ) -> None:
        """The object was deleted between the two requests, or two creations updated the quota at once."""
        converge(kube=kube_worker, cluster_id=cluster.pk, owner=OWNER, manifests=[namespace(name)], deadline=deadline)
        proxy.when("create", "resourcequotas").status(409)
        through = Kube(str(proxy.kubeconfig))
        with pytest.raises(ClusterUnavailable):
            create_once(kube=through, cluster_id=cluster.pk, owner=OWNER, manifest=quota(name, pods=1))
        made = create_once(kube=through, cluster_id=cluster.pk, owner=OWNER, manifest=quota(name, pods=1))
        assert made.result == "applied"


@pytest.mark.usefixtures("clean_cluster")
def test_an_expired_identity_is_no_verdict_about_the_object(
    proxy: ApiProxy, cluster: Cluster, name: str, deadline: Deadline
) -> None:
    """401 while tokens are renewed counts as an unavailable API server, not as a refusal shown for five minutes."""
    proxy.when("create", "namespaces").status(401)
    with pytest.raises(ClusterUnavailable):
        converge(
            kube=Kube(str(proxy.kubeconfig)),
            cluster_id=cluster.pk,
            owner=OWNER,
            manifests=[namespace(name)],
            deadline=deadline,
        )
    assert not AppliedObject.objects.exists()


def test_hashes_do_not_depend_on_the_order_of_keys() -> None:
    assert applied_objects.manifest_hash({"a": 1, "b": {"c": 2, "d": 3}}) == applied_objects.manifest_hash(
        {"b": {"d": 3, "c": 2}, "a": 1}
    )


def test_a_value_cannot_be_guessed_from_its_hash(settings: Any) -> None:
    ours = applied_objects.manifest_hash({"kind": "Secret", "data": {"PASSWORD": "MTIzNA=="}})
    settings.SECRET_KEY = "of another installation"
    assert applied_objects.manifest_hash({"kind": "Secret", "data": {"PASSWORD": "MTIzNA=="}}) != ours
