#!/bin/sh
# As the entry point of the image `valkey/valkey`: the server does not run as root.
set -eu
if [ "$1" = valkey-server ] && [ "$(id -u)" = 0 ]; then
	exec setpriv --reuid=valkey --regid=valkey --init-groups "$@"
fi
exec "$@"
