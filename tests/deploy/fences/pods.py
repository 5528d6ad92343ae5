"""Pods that the admission policies admit or refuse."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

LABELS = {
    "app.kubernetes.io/managed-by": "gpu-portal",
    "kueue.x-k8s.io/queue-name": "gpu-portal",
    "gpu-portal/class": "a100",
}


def template() -> Json:
    """A pod as the portal's own manifests make it, with what Kueue and the Job controller add."""
    return {
        "metadata": {
            "labels": LABELS | {"kueue.x-k8s.io/podset": "main"},
            "annotations": {"kueue.x-k8s.io/podset-unconstrained-topology": "true"},
        },
        "spec": {
            "restartPolicy": "Never",
            "priorityClassName": "gpu-portal",
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
            "tolerations": [
                {"key": "gpu-portal/class", "operator": "Equal", "value": "a100", "effect": "NoSchedule"},
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            ],
            "containers": [
                {
                    "name": "notebook",
                    "image": "example.org/notebook:1",
                    "env": [{"name": "JUPYTER_TOKEN", "valueFrom": {"secretKeyRef": {"name": "n", "key": "token"}}}],
                    "resources": {"limits": {"nvidia.com/gpu": "1"}},
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }
