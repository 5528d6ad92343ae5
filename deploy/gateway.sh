#!/bin/sh
# Runs Caddy. It reads certificate and key only with its configuration, so it gets the signal to read that again when one
# of the two files has changed. Open connections stay. With files that do not fit together it keeps the old ones and
# logs that; the next change is another attempt.
(
	# shellcheck disable=SC2086  # GATEWAY_TLS is: tls CERTIFICATE KEY
	set -- $GATEWAY_TLS
	[ $# -eq 3 ] || exit 0
	seen=$(cksum "$2" "$3")
	while sleep 5 && kill -0 $$; do
		now=$(cksum "$2" "$3")
		[ "$now" = "$seen" ] || kill -USR1 $$
		seen=$now
	done
) 2>/dev/null &
exec caddy run --config "$(dirname "$0")/Caddyfile" --adapter caddyfile
