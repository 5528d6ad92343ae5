"""When a connection counts as dead: its peer has said nothing to an idle connection for about 20 s. Pure."""

from __future__ import annotations

import socket
from typing import Any

IDLE_S, INTERVAL_S, COUNT = 10, 3, 3
# Nothing acknowledged for so long ends a connection, too: while something was sent, the kernel does not test it.
SILENCE_MS = 15_000

# For connections to Redis that wait for messages without a time-out: only the kernel can see that its host vanished.
WAITING_OPTIONS: dict[str, Any] = {
    "socket_keepalive": True,
    "socket_keepalive_options": {
        socket.TCP_KEEPIDLE: IDLE_S,
        socket.TCP_KEEPINTVL: INTERVAL_S,
        socket.TCP_KEEPCNT: COUNT,
        socket.TCP_USER_TIMEOUT: SILENCE_MS,
    },
}
