"""The whole vocabulary of statuses: a word, an icon and a tone for each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Status:
    word: str
    icon: str
    tone: str  # good, busy, wait, bad or idle


STATUSES = {
    # workloads
    "queued": Status("Queued", "clock", "wait"),
    "preparing": Status("Preparing", "package", "busy"),
    "starting": Status("Starting", "loader-2", "busy"),
    "ready": Status("Ready", "circle-check", "good"),
    "running": Status("Running", "player-play", "good"),
    "stopping": Status("Stopping", "power", "busy"),
    "stopped": Status("Stopped", "player-stop", "idle"),
    "succeeded": Status("Succeeded", "check", "good"),
    "failed": Status("Failed", "circle-x", "bad"),
    "blocked": Status("Blocked", "alert-octagon", "bad"),
    # requests
    "pending": Status("Pending", "clock", "wait"),
    "approved": Status("Approved", "circle-check", "good"),
    "denied": Status("Denied", "ban", "bad"),
    "declined": Status("Declined", "ban", "bad"),
    "withdrawn": Status("Withdrawn", "arrow-back-up", "idle"),
    # teams
    "active": Status("Active", "circle-check", "good"),
    "trial": Status("Trial", "hourglass", "busy"),
    "provisioning": Status("Provisioning", "loader-2", "busy"),
    "stuck": Status("Stuck", "alert-octagon", "bad"),
    "suspended": Status("Suspended", "player-pause", "wait"),
    "closing": Status("Closing", "power", "wait"),
    "closed": Status("Closed", "player-stop", "idle"),
    "no_namespace": Status("No namespace", "circle-dashed", "idle"),
    # objects in the cluster
    "applied": Status("Applied", "circle-check", "good"),
    "refused": Status("Rejected", "alert-octagon", "bad"),
    "foreign": Status("Name conflict", "user", "bad"),
    "drifted": Status("Drifted", "git-compare", "wait"),
    "missing": Status("Missing", "alert-triangle", "wait"),
    "repaired": Status("Repaired", "circle-check", "good"),
    "terminating": Status("Terminating", "power", "busy"),
    # findings of a check
    "error": Status("Error", "alert-octagon", "bad"),
    "warning": Status("Warning", "alert-triangle", "wait"),
    "hint": Status("Hint", "info-circle", "idle"),
    # no data: never shown as "stopped" or "0 free"
    "unknown": Status("Unknown", "help-circle", "idle"),
}
