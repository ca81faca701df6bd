#!/usr/bin/env bash
# Sends every example of the API's document to a server of its own. With --write, writes the answers into the document.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --locked --quiet
source tests/serve.sh
# Slow enough that a helper comes before what the simulation does by itself.
serve 1000
python3 tests/openapi/examples.py "$address" "$HUNDI_API_KEY" src/http/openapi/examples.json "$@"
refuse_panics
