"""Contracts of a GPU or slice that several workloads use: time-sliced, or concurrently by MPS."""

from __future__ import annotations

from catalog.contract.types import FEW_REPLICAS, INTERRUPTION, NO, PART, Axes, Contract, Guarantee, gib

_TELEMETRY = Guarantee(
    "Telemetry",
    NO,
    "Whole GPU only",
    "usage cannot be attributed to one pod.",
    "The GPU measures its load as a whole, and every pod on it sees the same metrics.",
)
_TELEMETRY_OF_SLICE = Guarantee(
    "Telemetry",
    NO,
    "Whole slice only",
    "usage cannot be attributed to one pod.",
    "The driver measures memory and activity of each slice, and every pod on the slice sees the same metrics.",
)


def time_sliced(axes: Axes) -> Contract:
    """Time-slicing by NVIDIA's device plugin, on a GPU or a MIG slice; Intel's shared devices; shared by a claim."""
    what = "slice" if axes.is_slice else "GPU"
    how = _how(axes)
    return Contract(
        promises=_promises_when_shared(axes, what, how),
        neighbours=f"Shared with {axes.others}{' on one slice' if axes.is_slice else ''}.",
        suits=(
            "Notebooks and tests with short bursts: one pod can compute while another is idle.",
            "Courses and first steps: an error costs only a restart.",
        ),
        avoid=(
            "Long training and benchmarks: step time depends on the other pods, so runs cannot be compared.",
            "Serving with a latency target: every time slice of another pod delays yours.",
            "Programs that need a known amount of memory: no memory is reserved for you.",
            *_many(axes, what),
        ),
        expected=(
            f"An out-of-memory error although your program is small: another pod filled the memory of the {what}.",
            "Speed that changes from minute to minute: other pods start and stop.",
            f"A program that ends because of another pod's fault: all pods on the {what} share its faults.",
            "No utilisation in nvidia-smi: the driver does not measure it for a slice."
            if axes.is_slice
            else "The same utilisation for every pod: it is measured once for all of them.",
            f"Only 1 unit per workload: a second share may be on the same {what} and adds neither memory nor speed.",
            *_counted(axes),
        ),
        incident=(
            f"All pods on one {what} fail again after a restart: the cause is the hardware, not another pod.",
            f"More than {axes.replicas} pods on one {what}: the device plugin counts wrongly.",
            f"No {what} in the pod although a unit was allocated: a fault of the hardware or its driver.",
        ),
        tier="pilot" if axes.interface == "dra" else "",
    )


def _many(axes: Axes, what: str) -> tuple[str, ...]:
    if axes.replicas <= FEW_REPLICAS:
        return ()
    return (
        f"More than light interactive work: while all {axes.replicas} pods compute, each waits for "
        f"{axes.replicas - 1} others, and the memory of the {what} has to do for all of them.",
    )


def _how(axes: Axes) -> str:
    """What divides the hardware among the pods."""
    if axes.interface == "dra":
        return "The DRA driver lets several claims use the same device; its settings for this are experimental."
    if axes.vendor == "intel":
        return "Intel's device plugin only counts: it gives the same GPU to several pods and limits none of them."
    return "The device plugin gives the same hardware to several pods, and the driver switches between them."


def _promises_when_shared(axes: Axes, what: str, how: str) -> tuple[Guarantee, ...]:
    size = f"the same {gib(axes.memory_mib)}" if axes.memory_mib else "the same memory"
    verb = "uses" if axes.replicas == 2 else "use"
    apart = " Pods on other slices of the GPU remain isolated." if axes.is_slice else ""
    return (
        Guarantee(
            "Memory",
            NO,
            "Not isolated",
            f"{axes.others} {verb} {size}; any of them can fill it.",
            f"Every process sees all memory of the {what}, without a limit.{apart}",
        ),
        Guarantee(
            "Compute",
            NO,
            "Time-sliced",
            f"not a fraction of a {what}; your throughput depends on the other pods.",
            f"{how} No time slice is guaranteed, and a second unit adds no second time slice.",
        ),
        Guarantee(
            "Fault isolation",
            NO,
            "None",
            "a fault of another pod may terminate your process.",
            f"All processes on the {what} share its faults, and a reset terminates all of them.",
        ),
        Guarantee(
            "Jitter",
            NO,
            "Strong",
            "each time slice of another pod pauses your process.",
            "While another process computes, yours does not run.",
        ),
        _TELEMETRY_OF_SLICE if axes.is_slice else _TELEMETRY,
        INTERRUPTION,
    )


def _counted(axes: Axes) -> tuple[str, ...]:
    """How units add up: they look like more hardware than there is."""
    if not axes.is_slice:
        return (
            f"More units than GPUs: each GPU is advertised {axes.replicas} times, and each unit is shared access to "
            "one GPU.",
        )
    on_gpu = axes.slices_on_gpu
    so = f", so {on_gpu} slices on a GPU are {on_gpu * axes.replicas} units" if on_gpu and on_gpu > 1 else ""
    return (
        f"More units than slices: each slice is advertised {axes.replicas} times{so}, and each unit is shared access "
        "to one slice.",
    )


def mps(axes: Axes) -> Contract:
    """CUDA's Multi-Process Service: clients compute at the same time, each with limits that the driver enforces."""
    clients, threads = axes.replicas, f"{100 / axes.replicas:.3g} %"
    limit = (
        f"at most {gib(axes.memory_mib)} per client"
        if axes.memory_mib
        else f"at most 1/{clients} of the GPU memory per client"
    )
    return Contract(
        promises=(
            Guarantee(
                "Memory",
                PART,
                "Limited",
                f"{limit}, enforced by the driver, not by hardware.",
                f"The GPU memory limit of a client is the GPU's memory divided by {clients}; all clients share one "
                "GPU.",
            ),
            Guarantee(
                "Compute",
                PART,
                "Capped",
                f"at most {threads} of the threads; caches are shared.",
                f"Each of {clients} clients can use {threads} of the GPU's threads at a time; no threads are reserved.",
            ),
            Guarantee(
                "Fault isolation",
                NO,
                "None",
                f"a fatal fault can terminate all {clients} clients of the GPU.",
                "All clients of a GPU use one MPS server, and a fatal fault reaches each of them.",
            ),
            Guarantee(
                "Jitter",
                PART,
                "Some",
                "other clients compute at the same time and share memory bandwidth.",
                "Threads are limited; bandwidth and caches are not.",
            ),
            _TELEMETRY,
            INTERRUPTION,
        ),
        neighbours=f"Shared with {axes.others}: {clients} clients per GPU.",
        suits=(
            "Many small, steady CUDA processes of one kind: they compute at the same time, without time slices.",
            "Small model servers that trust each other: each has a known GPU memory limit.",
        ),
        avoid=(
            "Work that must survive another pod's fault: clients share the faults of the GPU.",
            "Services in production: MPS sharing is experimental in the device plugin, so this class is a pilot.",
            "Programs that sometimes need more than their limit: the driver refuses the rest.",
        ),
        expected=(
            "An out-of-memory error at your limit while the GPU has free memory: the limit is per client.",
            "All clients of a GPU end together: one of them had a fatal fault.",
            "Speed that depends on the memory bandwidth other clients use: bandwidth is shared.",
            "Only 1 unit per workload: a second client may be on the same GPU and adds no speed of its own.",
        ),
        incident=(
            "Clients that cannot start because the MPS server does not answer: its daemon on the node is down.",
            "A client that gets more memory than its limit: the limit was not set.",
            f"More than {clients} clients on one GPU: the device plugin counts wrongly.",
        ),
        tier="pilot",
    )
