"""Names of the components that the portal waits for, and when one counts as silent. Pure."""

from __future__ import annotations

from datetime import timedelta

QUEUE_SYSTEM, SCHEDULER, CONTROLLERS = "kueue", "scheduler", "controllers"
COMPONENTS = {
    QUEUE_SYSTEM: "The queue system (Kueue)",
    SCHEDULER: "The scheduler (kube-scheduler)",
    CONTROLLERS: "The controller manager (kube-controller-manager)",
}
# A Lease is renewed every 2 s, in slow clusters every 10 s; after 15 s to 60 s another replica takes over.
SILENT_AFTER = timedelta(seconds=40)
