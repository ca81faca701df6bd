#!/usr/bin/env bash
# Drives Chromium over the documentation for callers, against a server of its own on a temporary database.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/browser/tools.sh
cargo build --locked --quiet
source tests/serve.sh
serve 50
HUNDI_API_KEY="$HUNDI_API_KEY" node tests/guides/pages.mjs "$address"
refuse_panics
