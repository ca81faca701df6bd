#!/usr/bin/env bash
# Makes the pictures in README.md, and pictured.txt with the text that they show. With --check it makes none: it fails
# where the demo now prints other lines, or a page shows other text, than the pictures do.
set -euo pipefail
cd "$(dirname "$0")/../.."
check=${1:-}

source tests/console/tools.sh
python3 docs/images/record.py docs/images/demo.svg $check target/debug/hundi demo --once
node docs/images/screens.mjs "$address" "$console" docs/images $check
refuse_panics
