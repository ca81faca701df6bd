#!/usr/bin/env bash
# Tries what deploy/ ships: two nodes on one PostgreSQL behind the example for nginx, one of them killed under load, and the systemd unit's syntax.
# Installs nginx from Debian where it is missing; none is started as a service.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! command -v nginx >/dev/null && [ ! -x /usr/sbin/nginx ]; then
  sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  # The package starts its service unless this says that none may be started.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
    $sudo chmod +x "$policy"
    trap '$sudo rm -f "$policy"' EXIT
  fi
  $sudo apt-get update -q
  $sudo apt-get install -y -q --no-install-recommends nginx openssl
fi
tests/postgres/install.sh
cargo build --locked --quiet
python3 tests/deploy/check.py

if command -v systemd-analyze >/dev/null; then
  unit=$(mktemp -d)/hundi.service
  sed "s|/usr/local/bin/hundi|$PWD/target/debug/hundi|" deploy/hundi.service > "$unit"
  said=$(systemd-analyze verify --man=no "$unit" 2>&1) || { echo "$said"; exit 1; }
  # With secrets as credentials too.
  mkdir "$unit.d" && cp deploy/credentials.conf "$unit.d/"
  said+=$(systemd-analyze verify --man=no "$unit" 2>&1) || { echo "$said"; exit 1; }
  # It also complains without failing.
  ! grep -i "hundi.service" <<<"$said" || exit 1
  rm -r "$(dirname "$unit")"
fi

# Docker is not needed for this: the files read, and what they name is there.
python3 tests/deploy/compose.py
conf=$(mktemp -d)
sed 's/node[12]:8080/127.0.0.1:8080/' deploy/compose/nginx.conf > "$conf/site.conf"
printf 'pid %s/pid; error_log stderr; events {} http { access_log off; include %s/site.conf; }' "$conf" "$conf" > "$conf/nginx.conf"
"$(command -v nginx || echo /usr/sbin/nginx)" -t -q -p "$conf" -c "$conf/nginx.conf"
rm -r "$conf"
