#!/usr/bin/env bash
# Drives Chromium over the payer's page, against a server of its own on a temporary database.
# Screenshots to look at are left in target/pay-page/.
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/browser/tools.sh

# Letters of every language of the page.
for language in hi ml ta te gu pa ar; do
  if [ -z "$(fc-list ":lang=$language" 2>/dev/null)" ]; then
    if [ "$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi
    $sudo apt-get update -q
    $sudo apt-get install -y -q --no-install-recommends fontconfig fonts-noto-core
    break
  fi
done

cargo build --locked --quiet
source tests/serve.sh
# Slow enough for the page to meet a payment on its way.
serve 3000

HUNDI_API_KEY="$HUNDI_API_KEY" node tests/pay_page/check.mjs "$address" target/pay-page

refuse_panics
