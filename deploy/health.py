"""`helm test`: asks the portal through the Service of its gateway, as a visitor does. Runs in the portal's image.

    python health.py https://gateway gpu.example.org

Web is healthy if it reaches its database, Redis and all migrations are applied (/readyz), doors if it refuses a visitor
without a session. The certificate is not verified: the name in it is not that of the Service.
"""

import http.client
import ssl
import sys
import time
from urllib.parse import urlsplit

EXPECTED = {"/readyz": 200, "/api/v1/watch": 401}
WITHIN_S, PAUSE_S = 60.0, 2.0


def main(service: str, host: str) -> int:
    until = time.monotonic() + WITHIN_S
    while found := problems(service, host):
        if time.monotonic() > until:
            sys.stderr.write("\n".join(found) + "\n")
            return 1
        time.sleep(PAUSE_S)
    sys.stdout.write(f"{host} is healthy.\n")
    return 0


def problems(service: str, host: str) -> list[str]:
    found = []
    for path, expected in EXPECTED.items():
        try:
            status, text = ask(service, host, path)
        except (OSError, http.client.HTTPException) as error:
            found.append(f"{service}{path} does not answer: {error}")
        else:
            if status != expected:
                found.append(f"{service}{path} answers {status}: {text[:500]}")
    return found


def ask(service: str, host: str, path: str) -> tuple[int, str]:
    address = urlsplit(service).netloc
    connection = (
        http.client.HTTPSConnection(address, timeout=10, context=ssl._create_unverified_context())
        if service.startswith("https:")
        else http.client.HTTPConnection(address, timeout=10)
    )
    # Where TLS ends before the gateway, this header says so: without it web would redirect to https.
    connection.request("GET", path, headers={"Host": host, "X-Forwarded-Proto": "https"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
