"""XID: the number of an error that NVIDIA's driver reports of a GPU, as `NVRM: Xid (PCI:0000:3b:00): 79, …`. Pure.

Source of the meanings: NVIDIA, "XID Errors" (docs.nvidia.com/deploy/xid-errors). Numbers that are not listed here are
shown without a meaning.
"""

from __future__ import annotations

import re

# Usually errors of a program, not of the GPU.
PROGRAM_XIDS = frozenset({13, 31, 43, 45})
_MEANINGS = {
    13: "an error in the computation of a program",
    31: "an invalid access to GPU memory by a program",
    43: "a program failed, and the GPU ended its work",
    45: "the GPU ended work after an earlier error",
    48: "GPU memory had an error that ECC cannot correct",
    63: "a faulty row of GPU memory is replaced at the next reset",
    64: "a faulty row of GPU memory could not be replaced",
    74: "an error of an NVLink connection",
    79: "the GPU has fallen off the bus",
    92: "GPU memory had many errors that ECC corrected",
    94: "GPU memory had an error that ECC cannot correct, in one program",
    95: "GPU memory had an error that ECC cannot correct, and all programs on the GPU are affected",
    119: "the GPU's own processor (GSP) does not respond",
    120: "the GPU's own processor (GSP) failed",
}
_XID = re.compile(r"xid(?:\s*\([^)\n]{0,60}\))?\D{0,12}?(\d{1,3})(?!\d)", re.IGNORECASE)


def xids(text: str) -> tuple[int, ...]:
    """Returns the numbers that a text names, in its order."""
    return tuple(int(found) for found in _XID.findall(text))


def hardware_xid(text: str) -> int | None:
    """Returns the first number that is not usually the error of a program."""
    return next((code for code in xids(text) if code not in PROGRAM_XIDS), None)


def xid_words(code: int) -> str:
    return f"XID {code}, {_MEANINGS[code]}" if code in _MEANINGS else f"XID {code}"
