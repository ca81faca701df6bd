#!/usr/bin/env bash
# Installs Debian's PostgreSQL server, PgBouncer, faketime, Patroni and etcd if they are missing. It makes and starts no
# cluster: the tests make their own.
set -euo pipefail

has_programs() {
  local folder version
  for folder in /usr/lib/postgresql/*/bin; do
    version=$(basename "$(dirname "$folder")")
    [ -x "$folder/initdb" ] && [ -x "$folder/pg_ctl" ] && [ -x "$folder/psql" ] && [ "${version%%.*}" -ge 15 ] && return
  done
  return 1
}

has_extras() {
  [ -x /usr/bin/patroni ] && [ -x /usr/bin/etcd ] && /usr/bin/python3 -c 'import etcd, psycopg2' 2>/dev/null &&
    [ -x /usr/sbin/pgbouncer ] && ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1
}

if has_programs && has_extras; then
  exit 0
fi
command -v apt-get >/dev/null || { echo "the tests need the programs of PostgreSQL 15 or later in /usr/lib/postgresql" >&2; exit 1; }
sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo
# Without this file, the package would make and start a cluster.
setting=/etc/postgresql-common/createcluster.d/hundi-tests.conf
$sudo apt-get update -q
$sudo apt-get install -y -q --no-install-recommends postgresql-common
$sudo mkdir -p "$(dirname "$setting")"
echo 'create_main_cluster = false' | $sudo tee "$setting" >/dev/null
trap '$sudo rm -f "$setting"' EXIT
$sudo apt-get install -y -q --no-install-recommends postgresql
# If one of these cannot be installed, the tests that need it are skipped with a message.
$sudo apt-get install -y -q --no-install-recommends pgbouncer || echo "PgBouncer cannot be installed: its tests are skipped" >&2
$sudo apt-get install -y -q --no-install-recommends faketime || echo "faketime cannot be installed: its tests are skipped" >&2
# Without this, Debian would start a service when it is installed.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
  $sudo chmod +x "$policy"
  trap '$sudo rm -f "$setting" "$policy"' EXIT
fi
$sudo apt-get install -y -q --no-install-recommends patroni etcd-server python3-etcd python3-psycopg2 ||
  echo "Patroni and etcd cannot be installed: their test is left out" >&2
has_programs || { echo "the distribution's PostgreSQL is older than version 15" >&2; exit 1; }
