#!/usr/bin/env bash
# Drives Chromium over the payer's page, against a server of its own on a temporary database.
# Screenshots to look at are left in target/pay-page/.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools=target/pay-page-tools
if ! cmp -s tests/pay_page/package-lock.json "$tools/installed-lock.json"; then
  mkdir -p "$tools"
  cp tests/pay_page/package.json tests/pay_page/package-lock.json "$tools/"
  npm ci --prefix "$tools" --ignore-scripts --no-audit --no-fund --loglevel=error
  cp tests/pay_page/package-lock.json "$tools/installed-lock.json"
fi

cargo build --locked --quiet
folder=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT

# Slow enough for the page to meet a payment on its way.
HUNDI_RATE_LIMIT_READS=0 HUNDI_RATE_LIMIT_WRITES=0 HUNDI_SIMULATION_STEP_MILLISECONDS=3000 \
  target/debug/hundi serve --listen 127.0.0.1:0 --database "sqlite:$folder/hundi.db" > "$folder/out" 2> "$folder/log" &
server=$!
for _ in $(seq 200); do
  grep -qs 'sk_test_' "$folder/out" && break
  sleep 0.05
done
address=$(sed -n 's/^listening on //p' "$folder/out")
HUNDI_KEY=$(grep -o 'sk_test_[0-9A-Za-z]*' "$folder/out" | head -n 1)

HUNDI_KEY="$HUNDI_KEY" node tests/pay_page/check.mjs "$address" "$tools" target/pay-page

if grep -q panicked "$folder/log"; then
  echo "the server panicked:" && cat "$folder/log" && exit 1
fi
