"""How the process that holds streams collects garbage and switches threads."""

from __future__ import annotations

import gc
import sys


def tune_interpreter() -> None:
    """Of the process that serves, as it starts: whoever only imports this keeps its own ways.

    What a rendering has made, the loop sends while the thread goes on with the rest: by default it would wait 5 ms for
    its turn, and again after each of its writes.

    What is loaded now stays, as in wsgi. What a rendering makes dies by reference count; by default its sheer number
    has all that open streams hold looked through again and again while everybody waits. The first number is beyond
    what renderings hold at a time, so that only cycles get there: those that connections leave when they end. The
    others are small, as most of these were open when something was collected, and only a full collection frees them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 3, 3)
    sys.setswitchinterval(0.0005)
