"""Garbage collection and thread switching in the process that holds streams."""

from __future__ import annotations

import gc
import sys


def tune_python() -> None:
    """Called by the serving process at its start; importing this module changes nothing.

    The event loop sends rendered parts while the thread renders the rest: with Python's default the loop would wait 5
    ms for the thread, and again after each write.

    Loaded objects are frozen, as in wsgi. Objects of a rendering are freed by reference count; with the default
    thresholds their number causes frequent collections over all objects of open streams. The first threshold is above
    the number of objects that renderings hold at a time, so that only cycles of closed connections reach it. The other
    thresholds are small, because most of these cycles are old by then, and only a full collection frees them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 3, 3)
    sys.setswitchinterval(0.0005)
