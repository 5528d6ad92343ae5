"""The sections of the page Help, which the search finds too: templates/portal/docs/help.html has their text. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HelpSection:
    id: str
    title: str
    words: str  # further words by which the search finds it


HELP = (
    HelpSection("quota", "Request quota", "units grant temporary increase renew expires approve deny decision"),
    HelpSection("launch", "Launch and follow workloads", "notebook job queued image volume log stop preemption why"),
    HelpSection("team", "Teams and members", "join invitation role owner manager viewer trial"),
    HelpSection("notices-help", "Notices", "email preferences mention unread notification"),
    HelpSection("command-line", "Command line", "gpu cli install login terminal shell ci pip"),
    HelpSection("api", "API and tokens", "rest curl openapi json scope program"),
    HelpSection("keyboard", "Keyboard shortcuts", "keys search focus"),
)
