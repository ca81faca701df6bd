#!/usr/bin/env bash
# Validates the OpenAPI document and runs schemathesis against a server of its own, on a temporary database.
# First argument: the folder of the Python tools. HUNDI_SCHEMATHESIS_EXAMPLES: requests per operation and phase.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools=$(realpath "$1")

cargo build --locked --quiet
source tests/serve.sh
cp tests/openapi/hooks.py "$folder/hooks.py"
target/debug/hundi openapi > "$folder/openapi.json"
"$tools/openapi-spec-validator" "$folder/openapi.json"

serve 5
python3 tests/openapi/seed.py "$address" "$HUNDI_API_KEY" > "$folder/schemathesis.toml"

# Every check but positive_data_acceptance: business rules refuse well-formed data.
# schemathesis leaves files in its working directory, so it runs in the temporary folder.
(cd "$folder" && SCHEMATHESIS_HOOKS=hooks.py "$tools/schemathesis" run "$address/openapi.json" \
  --checks all --exclude-checks positive_data_acceptance \
  --max-examples "${HUNDI_SCHEMATHESIS_EXAMPLES:-15}" --seed 1 --no-color)

kill "$server"
wait "$server"
server=
target/debug/hundi check --database "sqlite:$folder/hundi.db"
refuse_panics
