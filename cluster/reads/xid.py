"""XID: the number of an error that NVIDIA's driver reports of a GPU, as `NVRM: Xid (PCI:0000:3b:00): 79, …`. Pure.

Source of the names: NVIDIA, "XID Errors" (docs.nvidia.com/deploy/xid-errors). Numbers that are not listed here are
shown without a name.
"""

from __future__ import annotations

import re

# Usually errors of a program, not of the GPU.
PROGRAM_XIDS = frozenset({13, 31, 43, 45})
XID_NAMES = {
    13: "graphics engine exception",
    31: "memory page fault",
    43: "GPU stopped processing",
    45: "preemptive cleanup",
    48: "double-bit ECC error",
    63: "row remapping recorded",
    64: "row remapping failed",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    92: "high rate of corrected ECC errors",
    94: "contained memory error",
    95: "uncontained memory error",
    119: "no response of the GPU's system processor",
    120: "error of the GPU's system processor",
}
_XID = re.compile(r"xid(?:\s*\([^)\n]{0,60}\))?\D{0,12}?(\d{1,3})(?!\d)", re.IGNORECASE)


def xids(text: str) -> tuple[int, ...]:
    """Returns the numbers that a text names, in its order."""
    return tuple(int(found) for found in _XID.findall(text))


def hardware_xid(text: str) -> int | None:
    """Returns the first number that is not usually the error of a program."""
    return next((code for code in xids(text) if code not in PROGRAM_XIDS), None)


def xid_words(code: int) -> str:
    return f"XID {code} ({XID_NAMES[code]})" if code in XID_NAMES else f"XID {code}"
