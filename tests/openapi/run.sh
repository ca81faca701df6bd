#!/usr/bin/env bash
# Validates the OpenAPI document and runs schemathesis against a server of its own, on a temporary database.
# First argument: the folder of the Python tools. HUNDI_SCHEMATHESIS_EXAMPLES: requests per operation and phase.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools=$(realpath "$1")

cargo build --locked --quiet
folder=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT

cp tests/openapi/hooks.py "$folder/hooks.py"
target/debug/hundi openapi > "$folder/openapi.json"
"$tools/openapi-spec-validator" "$folder/openapi.json"

HUNDI_RATE_LIMIT_READS=0 HUNDI_RATE_LIMIT_WRITES=0 HUNDI_SIMULATION_STEP_MILLISECONDS=5 \
  target/debug/hundi serve --listen 127.0.0.1:0 --database "sqlite:$folder/hundi.db" > "$folder/out" 2> "$folder/log" &
server=$!
for _ in $(seq 200); do
  grep -q 'sk_test_' "$folder/out" && break
  sleep 0.05
done
address=$(sed -n 's/^listening on //p' "$folder/out")
HUNDI_KEY=$(grep -o 'sk_test_[0-9A-Za-z]*' "$folder/out" | head -n 1)

python3 tests/openapi/seed.py "$address" "$HUNDI_KEY" > "$folder/schemathesis.toml"

# Every check but positive_data_acceptance: business rules refuse well-formed data.
# It leaves files where it runs, so it runs in the temporary folder.
(cd "$folder" && SCHEMATHESIS_HOOKS=hooks.py "$tools/schemathesis" run "$address/openapi.json" \
  --checks all --exclude-checks positive_data_acceptance \
  --max-examples "${HUNDI_SCHEMATHESIS_EXAMPLES:-15}" --seed 1 --no-color)

kill "$server"
wait "$server"
server=
target/debug/hundi check --database "sqlite:$folder/hundi.db"
if grep -q panicked "$folder/log"; then
  echo "the server panicked:" && cat "$folder/log" && exit 1
fi
