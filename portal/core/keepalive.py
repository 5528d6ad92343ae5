"""When a connection counts as dead: its peer has said nothing to an idle connection for about 20 s. Pure."""

from __future__ import annotations

import socket

IDLE_S, INTERVAL_S, COUNT = 10, 3, 3

# For the broker's connections. A worker waits for messages without a time-out: only the kernel can see that the host of
# Redis vanished.
BROKER_OPTIONS = {
    "socket_keepalive": True,
    "socket_keepalive_options": {
        socket.TCP_KEEPIDLE: IDLE_S,
        socket.TCP_KEEPINTVL: INTERVAL_S,
        socket.TCP_KEEPCNT: COUNT,
    },
}
