#!/usr/bin/env bash
# A throw-away cluster of three PostgreSQL servers under Patroni, with an etcd of its own. It prints its folder and of each member (a, b, c)
# the port of its server and of its Patroni. Each line of its input names a member whose Patroni is to be started again.
# When its input ends, it removes everything, so that it cannot outlive who started it. FOLDER/NAME.pid is the number of a Patroni, etcd.pid
# that of etcd, FOLDER/NAME/postmaster.pid begins with that of a server.
# HUNDI_TEST_PATRONI names another Patroni than Debian's, which the user postgres must be able to run, and HUNDI_TEST_PATRONI_MODE its
# synchronous_mode: true or, from Patroni 4 on, quorum.
set -euo pipefail
# Only the end of the input ends it: whoever started it may be interrupted and still need it for a moment.
trap '' INT TERM HUP

patroni=${HUNDI_TEST_PATRONI:-/usr/bin/patroni}
mode=${HUNDI_TEST_PATRONI_MODE:-true}
programs=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
folder=$(mktemp -d "${TMPDIR:-/tmp}/hundi-patroni.XXXXXX")
as=()
if [ "$(id -u)" = 0 ]; then
  # The server refuses to run as root.
  user=postgres
  chown "$user" "$folder"
  as=(setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups --)
fi
cd "$folder"
run() { exec env -i PATH="$programs:/usr/bin:/bin" LC_ALL=C HOME="$folder" "${as[@]}" "$@"; }

remove() {
  # Patroni first, so that it starts no server again; frozen processes end too.
  for file in [abc].pid etcd.pid [abc]/postmaster.pid; do
    [ -e "$file" ] && kill -KILL "$(head -n 1 "$file")" 2>/dev/null || true
  done
  # The children of a server see that it has gone.
  sleep 0.5
  rm -rf "$folder"
}
trap remove EXIT

# Below the ports that the system gives to clients, and free now.
declare -A taken=()
free_port() {
  while :; do
    port=$((10000 + RANDOM % 22000))
    if [ -z "${taken[$port]:-}" ] && ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      taken[$port]=1
      return
    fi
  done
}

free_port; etcd=$port
free_port; peers=$port
(run etcd --name etcd --data-dir etcd --listen-client-urls "http://127.0.0.1:$etcd" --advertise-client-urls "http://127.0.0.1:$etcd" \
  --listen-peer-urls "http://127.0.0.1:$peers" --initial-advertise-peer-urls "http://127.0.0.1:$peers" \
  --initial-cluster "etcd=http://127.0.0.1:$peers") </dev/null >etcd.log 2>&1 &
echo $! >etcd.pid

start() {
  (run "$patroni" "$1.yml") </dev/null >>"$1.log" 2>&1 &
  echo $! >"$1.pid"
}

line="$folder"
for name in a b c; do
  free_port; server=$port
  free_port; api=$port
  line="$line $server $api"
  cat >"$name.yml" <<YAML
scope: hundi
name: $name
restapi: {listen: "127.0.0.1:$api", connect_address: "127.0.0.1:$api"}
etcd3: {host: "127.0.0.1:$etcd"}
bootstrap:
  dcs:
    ttl: 10
    loop_wait: 2
    retry_timeout: 3
    # A server that died is replaced at once rather than started again.
    primary_start_timeout: 0
    master_start_timeout: 0
    synchronous_mode: $mode
    postgresql:
      use_pg_rewind: true
      parameters: {max_connections: 200, wal_keep_size: 512MB}
  initdb: [{encoding: UTF8}, {locale: C}, {auth: trust}, no-sync]
  pg_hba:
    - host all all 127.0.0.1/32 trust
    - host replication all 127.0.0.1/32 trust
    - local all all trust
postgresql:
  listen: 127.0.0.1:$server
  connect_address: 127.0.0.1:$server
  data_dir: $folder/$name
  bin_dir: $programs
  pgpass: $folder/$name.pgpass
  authentication: {superuser: {username: postgres}, replication: {username: replicator}}
  # The tests end processes, not the machine: what the system has taken is safe.
  parameters: {unix_socket_directories: $folder, fsync: "off"}
YAML
  start "$name"
  # The first one makes the cluster, the others copy it.
  if [ "$name" = a ]; then
    for _ in $(seq 600); do
      grep -q 'no action. I am (a), the leader' a.log && break
      sleep 0.1
    done
  fi
done

is_whole() {
  local answer
  answer=$(python3 -c "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:$api/cluster', timeout=5).read().decode())") || return 1
  local synchronous=1
  [ "$mode" = quorum ] && synchronous=2
  [ "$(grep -oE '"role": "(replica|sync_standby|quorum_standby)", "state": "(running|streaming)"' <<<"$answer" | wc -l)" = 2 ] &&
    [ "$(grep -oE '"role": "(sync|quorum)_standby"' <<<"$answer" | wc -l)" = "$synchronous" ]
}
for _ in $(seq 240); do
  if is_whole 2>/dev/null; then
    echo "$line"
    # Whoever waits for the end of our output must not wait for ours.
    exec >/dev/null 2>&1
    while read -r name; do start "$name"; done
    exit 0
  fi
  sleep 0.25
done
tail -n 20 ./*.log >&2
exit 1
