#!/usr/bin/env bash
# Sends every example of the OpenAPI document to a server of its own. With --write, it writes the answers into the document.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --locked --quiet
source tests/serve.sh
# Slow enough that a test helper acts before the simulation does so by itself.
serve 1000
python3 tests/openapi/examples.py "$address" "$HUNDI_API_KEY" src/http/openapi/examples.json "$@"
refuse_panics
