"""Simulated storage: PersistentVolumeClaims of the StorageClass `standard` get a local directory, as from a
provisioner whose storage every node can mount. It binds at once, refuses nothing and records no events; the real node
has a real provisioner.

The control plane binds and releases volumes. This module creates a volume for each claim, enlarges it when the claim is
enlarged, and removes it with its directory when the claim is deleted (`reclaimPolicy: Delete`). Sizes are not enforced.
"""

from __future__ import annotations

import http.client
import shutil
import threading
from pathlib import Path

from devcluster.client.kube import Api, ApiError
from devcluster.client.list_watch import ListWatch
from devcluster.client.types import Json

PROVISIONER = "devcluster/volumes"
CLASS = "standard"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


class Volumes:
    """Two threads that follow claims and volumes. A change that could not be made is made at the next list, which
    follows an outage.
    """

    def __init__(self, api: Api, directory: Path) -> None:
        self.api = api
        self.directory = directory
        self._claims = ListWatch(api, "v1/persistentvolumeclaims")
        self._volumes = ListWatch(api, "v1/persistentvolumes")
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._serve_claims, self._reclaim)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._claims.stop()
        self._volumes.stop()

    def directory_of(self, claim: Json) -> Path:
        """The name contains part of the uid, so a claim that is created again with the same name starts with an empty
        directory.
        """
        meta = claim["metadata"]
        return self.directory / f"{meta['namespace']}_{meta['name']}_{meta['uid'][:8]}"

    def _serve_claims(self) -> None:
        for kind, claim in self._claims:
            if kind == "DELETED" or claim["spec"].get("storageClassName") != CLASS:
                continue
            try:
                if claim["status"]["phase"] == "Pending" and not claim["spec"].get("volumeName"):
                    self._make(self.directory_of(claim))
                    self.api.create(_volume(claim, self.directory_of(claim)))
                elif claim["status"]["phase"] == "Bound" and _size(claim) != claim["status"]["capacity"]["storage"]:
                    self._grow(claim)
            except ApiError as error:
                if error.status not in (404, 409):  # the volume exists, or the claim was deleted
                    print(f"volumes: {claim['metadata']['name']}: {error}", flush=True)
            except (OSError, http.client.HTTPException) as error:
                print(f"volumes: no answer from the API server: {error}", flush=True)

    def _make(self, directory: Path) -> None:
        """Any user may write there, as in folders of a local-path provisioner: kubelet changes no group of a hostPath.
        The folder above is closed to others.
        """
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o777)

    def _grow(self, claim: Json) -> None:
        capacity = {"storage": _size(claim)}
        meta = claim["metadata"]
        self.api.patch("v1/persistentvolumes", claim["spec"]["volumeName"], {"spec": {"capacity": capacity}})
        self.api.patch_status(
            "v1/persistentvolumeclaims", meta["name"], {"capacity": capacity}, namespace=meta["namespace"]
        )

    def _reclaim(self) -> None:
        for kind, volume in self._volumes:
            ours = volume["metadata"].get("annotations", {}).get(PROVISIONED_BY) == PROVISIONER
            if kind == "DELETED" or not ours or volume["status"].get("phase") not in ("Released", "Failed"):
                continue
            shutil.rmtree(volume["spec"]["hostPath"]["path"], ignore_errors=True)
            try:
                self.api.delete("v1/persistentvolumes", volume["metadata"]["name"])
            except (ApiError, OSError, http.client.HTTPException) as error:
                print(f"volumes: {volume['metadata']['name']} stays for now: {error}", flush=True)


def _volume(claim: Json, directory: Path) -> Json:
    meta, spec = claim["metadata"], claim["spec"]
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": meta["name"], "uid": meta["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pvc-{meta['uid']}", "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": _size(claim)},
            "claimRef": reference | {"namespace": meta["namespace"]},
            "hostPath": {"path": str(directory)},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": CLASS,
        },
    }


def _size(claim: Json) -> str:
    return str(claim["spec"]["resources"]["requests"]["storage"])
