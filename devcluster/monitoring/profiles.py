"""What a simulated program does with its GPU: how busy it is and how much memory it holds. Pure.

Every figure depends only on the profile, the pod's uid, the device and the time, so that the same question has the same
answer, also for the past.
"""

from __future__ import annotations

from hashlib import blake2b

from devcluster.client.types import Json

# Annotation of a pod, or a variable of its first container: one of PROFILES.
ANNOTATION, VARIABLE = "devcluster/gpu-profile", "GPU_PROFILE"
STEADY, BURSTS, IDLE, MEMORY, FINISHED = PROFILES = ("steady", "bursts", "idle", "memory", "finished")
# Figures change when this many seconds have passed.
STEP_S = 15
BURST_EVERY_S, BURST_S = 600, 180
# The program has done its work, and keeps the GPU.
FINISHED_AFTER_S = 1800
# A local process that uses less of one core than this does nothing.
BUSY_FROM = 0.1
_MEMORY = {STEADY: (0.55, 0.85), BURSTS: (0.3, 0.5), IDLE: (0.08, 0.2), MEMORY: (0.88, 0.94), FINISHED: (0.4, 0.6)}
_MEMORY_OF_NOTEBOOK = (0.08, 0.15)


def profile_of(pod: Json, *, default: str) -> str:
    """An unknown profile is ignored."""
    variables = pod["spec"]["containers"][0].get("env", ())
    named = {one["name"]: one.get("value", "") for one in variables}.get(VARIABLE, "")
    found = pod["metadata"].get("annotations", {}).get(ANNOTATION) or named
    return found if found in PROFILES else default


def activity(profile: str, *, uid: str, device: str, at: float, started_at: float) -> float:
    """The part of the time, 0 to 1, in which the device computes."""
    step = int(at // STEP_S)
    wave = unit(uid, device, step)
    is_busy = profile == STEADY
    if profile == BURSTS:
        phase = unit(uid, "phase") * BURST_EVERY_S
        is_busy = (at + phase) % BURST_EVERY_S < BURST_S
    elif profile == FINISHED:
        is_busy = at - started_at < FINISHED_AFTER_S
    return 0.85 + 0.1 * wave if is_busy else 0.02 * wave


def measured_activity(cores: float, *, uid: str, device: str, at: float) -> float:
    """Of a notebook whose local processes use so many cores."""
    wave = unit(uid, device, int(at // STEP_S))
    return 0.02 * wave if cores < BUSY_FROM else min(1.0, cores) * (0.88 + 0.08 * wave)


def memory_held(profile: str, *, uid: str) -> float:
    """The part of the device's memory."""
    least, most = _MEMORY.get(profile, _MEMORY_OF_NOTEBOOK)
    return least + (most - least) * unit(uid, "memory")


def unit(*parts: object) -> float:
    """A number from 0 to 1 that depends only on `parts`."""
    digest = blake2b("|".join(map(str, parts)).encode(), digest_size=6).digest()
    return int.from_bytes(digest) / 2**48
