"""How the process that holds streams collects garbage and switches threads."""

from __future__ import annotations

import gc
import sys


def tune_python() -> None:
    """Called by the serving process at its start; importing this module changes nothing.

    The loop sends what is rendered while the thread renders the rest: by default it would wait 5 ms for the thread,
    and again after each write.

    Loaded objects are frozen, as in wsgi. Objects of a rendering are freed by reference count; with the default
    thresholds their number causes frequent collections over all objects of open streams. The first threshold is
    above what renderings keep at a time, so that only cycles get there: those that closed connections leave. The
    others are small, because most of these cycles are old by then, and only a full collection frees them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 3, 3)
    sys.setswitchinterval(0.0005)
