"""An API server that has one log of any length: `python -m tests.perf.servers.long_log PORT MIB`."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MIB = 1024 * 1024
LINE = b"2026-11-21T09:00:00Z step 001234 loss 2.3456 tokens/s 123456\n"
PART = (LINE * (MIB // len(LINE) + 1))[:MIB]


class LongLog(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mib = 0

    def do_GET(self) -> None:
        parts = self.mib if "/log" in self.path else 0
        self.send_response(200)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(parts * MIB))
        self.end_headers()
        try:
            for _ in range(parts):
                self.wfile.write(PART)
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    LongLog.mib = int(sys.argv[2])
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), LongLog).serve_forever()
