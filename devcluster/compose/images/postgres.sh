#!/bin/sh
# As much of the entry point of the image `postgres` as docker-compose.yml uses: a new database has a user, its password
# from a file, and a database; the server does not run as root. During the setup it does not listen on the network.
set -eu
if [ "$(id -u)" = 0 ]; then
	install -d -m 0700 -o postgres -g postgres "$PGDATA"
	exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	initdb -D "$PGDATA" --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth=scram-sha-256 \
		--encoding=UTF8 --locale=C --locale-provider=builtin --builtin-locale=C.UTF-8 --no-instructions
	echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
	pg_ctl -D "$PGDATA" -w -o "-c listen_addresses='' -c unix_socket_directories=/tmp" start
	PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE") createdb --host=/tmp --username="$POSTGRES_USER" \
		--maintenance-db=postgres "$POSTGRES_DB"
	pg_ctl -D "$PGDATA" -w -m fast stop
fi
exec "$@" -c "listen_addresses=*" -c unix_socket_directories=/tmp
