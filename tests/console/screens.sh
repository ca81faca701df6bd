#!/usr/bin/env bash
# Makes pictures of the console's pages in target/console-screens/. Arguments limit it to the pages that they name;
# --language=hi makes them in Hindi.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/console/tools.sh
node tests/console/screens.mjs "$address" "$console" target/console-screens "$@"
