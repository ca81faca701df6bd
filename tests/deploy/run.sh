#!/usr/bin/env bash
# Tests deploy/: two nodes on one PostgreSQL behind the nginx example, one of them killed under load, and the syntax of the
# systemd unit. Installs nginx from Debian if it is missing, and starts no service.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! command -v nginx >/dev/null && [ ! -x /usr/sbin/nginx ]; then
  sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  # Without this, the package would start its service.
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

# Needs no Docker: checks that the files parse and that what they name exists.
python3 tests/deploy/compose.py
conf=$(mktemp -d)
sed 's/node[12]:8080/127.0.0.1:8080/' deploy/compose/nginx.conf > "$conf/site.conf"
printf 'pid %s/pid; error_log stderr; events {} http { access_log off; include %s/site.conf; }' "$conf" "$conf" > "$conf/nginx.conf"
"$(command -v nginx || echo /usr/sbin/nginx)" -t -q -p "$conf" -c "$conf/nginx.conf"
rm -r "$conf"
