"""What a fault means: for the people of a run, and for operators. Pure.

What the codes are and which part is at fault is from NVIDIA's documentation "XID Errors": its catalog has for each code
what happened and the recovery action (restart the application, reset the GPU, restart the node, contact support). The
sentences are our own. A code that is not listed here is one of hardware or of the driver, as in the rules of
Prometheus.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from cluster.reads.xid import XID_NAMES
from usage.faults.promql import HOT_CELSIUS, LASTS_MINUTES
from usage.faults.types import FaultKind

# A fault that returns within this time is the same one: nobody is told again.
SAME_WITHIN = timedelta(hours=1)
# A GPU without metrics for so long is taken to be gone: replaced, or its node removed.
GONE_AFTER = timedelta(days=7)


@dataclass(frozen=True)
class FaultMeaning:
    """`what` happened, whether work is lost, what its users should `do`, what `operators` should do."""

    name: str
    what: str
    loss: str
    do: str
    operators: str
    is_program: bool = False
    # Then the GPU counts as unhealthy as well.
    cordons: bool = True


_ENDED = "Programs that used this GPU have most likely ended; what they had only in memory is lost."
_GOES_ON = "Nothing is lost."
_PROGRAM_ENDED = "The program has most likely ended; what it had only in memory is lost."
_AGAIN = "If the run has failed, start it again; it may get another GPU. The operators are notified."
_RESET = "Cordon the node, wait until its workloads have ended, and reset the GPU."
_REPLACE = "Cordon the node, wait until its workloads have ended, reset the GPU, and replace it if it happens again."


def _program(name: str, what: str, do: str) -> FaultMeaning:
    return FaultMeaning(
        name,
        what,
        _PROGRAM_ENDED,
        do,
        "No action if programs of one team see it. If those of several teams fail on the same GPU, test the GPU with "
        "dcgmi diag.",
        is_program=True,
        cordons=False,
    )


_XIDS: Mapping[int, FaultMeaning] = {
    13: _program(
        XID_NAMES[13],
        "The GPU stopped a kernel, most often because the program accessed memory outside of an array.",
        "Run it with compute-sanitizer or CUDA_LAUNCH_BLOCKING=1 to find the kernel.",
    ),
    31: _program(
        XID_NAMES[31],
        "The program accessed an address that is not valid in GPU memory.",
        "Run it with compute-sanitizer or CUDA_LAUNCH_BLOCKING=1 to find the kernel.",
    ),
    43: _program(
        XID_NAMES[43],
        "The driver reset the program's part of the GPU after an error of the program. The GPU itself works.",
        "Look for the first error in the log of the program, and start it again.",
    ),
    45: _program(
        XID_NAMES[45],
        "The driver removed the program's work from the GPU: the program was ended while it computed, or an earlier "
        "error ended it.",
        "No action if you stopped it. Otherwise look for the first error in its log.",
    ),
    48: FaultMeaning(
        XID_NAMES[48],
        "GPU memory had an error that ECC cannot correct.",
        _ENDED,
        _AGAIN,
        _REPLACE,
    ),
    63: FaultMeaning(
        XID_NAMES[63],
        "The GPU has marked a faulty row of its memory. A spare row replaces it after the next reset.",
        "Nothing is lost by this itself; an uncorrectable error may have come before it.",
        "No action if the run continues. If it has failed, start it again.",
        _RESET,
    ),
    64: FaultMeaning(
        XID_NAMES[64],
        "The GPU cannot record the replacement of a faulty row of its memory.",
        "Programs that use this GPU may fail or compute wrong values.",
        "Save what you can, stop the run, and start it again; it may get another GPU.",
        _REPLACE,
    ),
    74: FaultMeaning(
        XID_NAMES[74],
        "The connection between GPUs, NVLink, reported an error.",
        "Jobs on several GPUs may have ended with NCCL errors; what they had only in memory is lost then.",
        _AGAIN,
        f"{_RESET} If it happens again, check seating, bridges and NVSwitch.",
    ),
    79: FaultMeaning(
        XID_NAMES[79],
        "The node can no longer reach this GPU.",
        _ENDED,
        _AGAIN,
        "Cordon the node, wait until its workloads have ended, and reboot it. If it happens again, check power, "
        "seating and cooling, and replace the GPU.",
    ),
    94: FaultMeaning(
        XID_NAMES[94],
        "GPU memory had an error that ECC cannot correct. Only the program that used this memory is affected.",
        "The program that used this memory has ended; what it had only in memory is lost. Others continue.",
        _AGAIN,
        _RESET,
    ),
    95: FaultMeaning(
        XID_NAMES[95],
        "GPU memory had an error that ECC cannot correct, and any program on the GPU may be affected.",
        "Programs that used this GPU have ended or computed with wrong values: do not use results of the last minutes.",
        _AGAIN,
        _REPLACE,
    ),
    119: FaultMeaning(
        XID_NAMES[119],
        "The system processor of the GPU (GSP) does not respond to the driver.",
        _ENDED,
        _AGAIN,
        "Cordon the node, wait until its workloads have ended, and reboot it. If it happens again, update the driver "
        "or replace the GPU.",
    ),
    120: FaultMeaning(
        XID_NAMES[120],
        "The system processor of the GPU (GSP) reported an error.",
        _ENDED,
        _AGAIN,
        "Cordon the node, wait until its workloads have ended, and reset the GPU or reboot the node.",
    ),
}
_OTHER_XID = FaultMeaning(
    "error of the GPU or of its driver",
    "The driver reported an error of the GPU, its memory, its bus or the driver itself.",
    "Programs that used this GPU may have failed.",
    _AGAIN,
    "Look up the code in NVIDIA's list of XID errors. Cordon the node, wait until its workloads have ended, and reset "
    "the GPU or reboot the node.",
)
_KINDS: Mapping[FaultKind, FaultMeaning] = {
    FaultKind.ECC: FaultMeaning(
        "uncorrectable memory errors",
        "GPU memory had errors that ECC cannot correct.",
        "Programs that used this memory have ended or computed with wrong values: do not use results of the last "
        "minutes.",
        _AGAIN,
        _REPLACE,
    ),
    FaultKind.ROW_REMAP: FaultMeaning(
        "row remapping failure",
        "The GPU cannot replace a faulty row of its memory: its spare rows are used up.",
        "Nothing is lost yet, but errors of its memory will continue and can end programs.",
        "Save your work, and start the run again when you can; it may get another GPU. The operators are notified.",
        "Drain the node and replace the GPU.",
    ),
    FaultKind.HOT: FaultMeaning(
        "high temperature",
        f"The GPU has been hotter than {HOT_CELSIUS} °C for {LASTS_MINUTES} minutes. Near its limit it lowers its "
        "clocks.",
        _GOES_ON,
        "No action. The run may become slower. The operators are notified.",
        "Check fans, air flow and the temperature of the room.",
        cordons=False,
    ),
    FaultKind.THROTTLED: FaultMeaning(
        "thermal throttling",
        "The GPU computes slower because it is too hot.",
        _GOES_ON,
        "No action. The run is slower; jobs with several workers wait for this one. The operators are notified.",
        "Check fans, air flow and the temperature of the room. Cordon the node if the jobs on it matter.",
        cordons=False,
    ),
    FaultKind.NVLINK: FaultMeaning(
        "NVLink errors",
        "NVLink, the connection between GPUs, had errors of transfers in the last minutes.",
        "Nothing is lost while the run continues. Jobs on several GPUs become slow or end with NCCL errors.",
        "No action while the run continues. If it has failed, start it again. The operators are notified.",
        "Cordon the node and run dcgmi diag. If errors continue after a reset, check seating, bridges and NVSwitch.",
    ),
}


def meaning_of(kind: FaultKind, code: int) -> FaultMeaning:
    return _XIDS.get(code, _OTHER_XID) if kind is FaultKind.XID else _KINDS[kind]


def title_of(kind: FaultKind, code: int) -> str:
    """`XID 79: GPU has fallen off the bus`, `row remapping failure`."""
    name = meaning_of(kind, code).name
    return f"XID {code}: {name}" if kind is FaultKind.XID else name


def cordon_command(kind: FaultKind, code: int, node: str) -> str:
    """ "" if none is proposed. The portal does not cordon."""
    return f"kubectl cordon {node}" if node and meaning_of(kind, code).cordons else ""


def may_name_runs(kind: FaultKind, code: int, *, runs: int, is_shared: bool) -> bool:
    """Whether the fault is of the runs that the exporter names. An error of a program is of one run, and of none if
    several hold the GPU: the exporter names only one of the pods that share a GPU, and the program may be another one.
    """
    return not meaning_of(kind, code).is_program or (runs == 1 and not is_shared)
