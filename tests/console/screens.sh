#!/usr/bin/env bash
# Makes pictures of the console's pages to look at, in target/console-screens/. Names of pages limit it.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/console/tools.sh
node tests/console/screens.mjs "$address" "$console" target/console-screens "$@"
