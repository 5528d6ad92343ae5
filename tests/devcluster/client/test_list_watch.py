from __future__ import annotations

import threading

from devcluster.client.kube import Api
from devcluster.client.list_watch import ListWatch
from devcluster.faults.api_proxy import ApiProxy
from tests.support.waiting import wait_until


def test_what_happened_during_an_outage_is_told_after_it(services, admin, namespace, tmp_path):
    def config_map(name: str) -> None:
        admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}})

    told: list[tuple[str, str]] = []
    with ApiProxy(services["kubeconfigs"]["admin"], tmp_path) as proxy:
        follow = ListWatch(Api(proxy.kubeconfig), "v1/configmaps", namespace=namespace)
        thread = threading.Thread(
            target=lambda: told.extend((kind, obj["metadata"]["name"]) for kind, obj in follow), daemon=True
        )
        thread.start()
        for name in ("stays", "goes"):
            config_map(name)
        # An open watch has not told of everything yet, and what was never seen is not missed.
        wait_until(lambda: {("ADDED", "stays"), ("ADDED", "goes")} <= set(told) and proxy.calls("watch", "configmaps"))
        proxy.refuse()
        admin.delete("v1/configmaps", "goes", namespace=namespace)
        config_map("comes")
        proxy.resume()
        wait_until(lambda: {("ADDED", "comes"), ("DELETED", "goes")} <= set(told))
        follow.stop()
        thread.join(5)
    assert not thread.is_alive()
    assert told.count(("ADDED", "stays")) == 1
