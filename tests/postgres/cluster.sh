#!/usr/bin/env bash
# A throw-away PostgreSQL: makes a cluster in a temporary folder, starts it on an unusual port, and prints its URL and its
# folders. Removes everything when its standard input ends, so it cannot outlive the program that started it. Trailing
# arguments are settings such as fsync=on.
set -euo pipefail
# Only the end of the input ends it: an interrupted caller may still need it for a moment.
trap '' INT TERM HUP

programs=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
folder=$(mktemp -d "${TMPDIR:-/tmp}/hundi-postgres.XXXXXX")
data=$folder/data
as=()
if [ "$(id -u)" = 0 ]; then
  # The server refuses to run as root.
  user=postgres
  id "$user" >/dev/null 2>&1 || user=nobody
  chown "$user" "$folder"
  as=(setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups --)
fi
cd "$folder"
run() { env -i PATH="$programs:/usr/bin:/bin" LC_ALL=C HOME="$folder" "${as[@]}" "$@"; }

remove() {
  # Also ends copies of the cluster that a test started beside it.
  for running in "$folder"/*/postmaster.pid; do
    [ -e "$running" ] && run pg_ctl -D "$(dirname "$running")" -m immediate stop >/dev/null 2>&1 || true
  done
  rm -rf "$folder"
}
trap remove EXIT

run initdb -D "$data" -U postgres -A trust -E UTF8 --locale=C --no-sync --no-instructions >"$folder/initdb.log" 2>&1 \
  || { cat "$folder/initdb.log" >&2; exit 1; }
{
  echo "listen_addresses = '127.0.0.1'"
  echo "unix_socket_directories = '$folder'"
  echo "max_connections = 400"
  # The tests kill processes, not the machine, so what the kernel has taken is safe.
  echo "fsync = off"
  echo "log_min_messages = fatal"
  for setting in "$@"; do
    echo "${setting%%=*} = '${setting#*=}'"
  done
} >>"$data/postgresql.conf"

for _ in $(seq 30); do
  # Below the ports that the system gives to clients.
  port=$((10000 + RANDOM % 22000))
  sed -i '/^port = /d' "$data/postgresql.conf"
  echo "port = $port" >>"$data/postgresql.conf"
  if run pg_ctl -D "$data" -l "$folder/log" -w -t 60 start >/dev/null 2>&1; then
    echo "postgres://postgres@127.0.0.1:$port/postgres $data $programs"
    # Whoever waits for the end of our output must not wait for ours.
    exec >/dev/null 2>&1
    while read -r _; do :; done
    exit 0
  fi
done
cat "$folder/log" >&2
exit 1
