#!/usr/bin/env bash
# Drives Chromium over the operator's console, against a server of its own on a temporary database.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/console/tools.sh
node tests/console/check.mjs "$address" "$console"
refuse_panics
HUNDI_TEST_BUILT=yes tests/console/openid.sh
