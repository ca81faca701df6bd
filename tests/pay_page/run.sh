#!/usr/bin/env bash
# Drives Chromium over the payer's page, against a server of its own on a temporary database.
# Leaves screenshots in target/pay-page/.
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

# Each part has a server of its own.
(
  source tests/serve.sh
  # Slow enough for the page to meet a payment on its way.
  serve 3000
  HUNDI_API_KEY="$HUNDI_API_KEY" node tests/pay_page/check.mjs "$address" target/pay-page
  refuse_panics
)
(
  source tests/serve.sh
  node tests/pay_page/logo.mjs "$folder/logo.png"
  export HUNDI_ISSUER_LOGO="$folder/logo.png" HUNDI_ISSUER_COLOUR="#e0218a"
  export HUNDI_ISSUER_NAME="Gulf & Malabar Remittance Services L.L.C"
  export HUNDI_ISSUER_ADDRESS="Office 1203, Marina Heights Tower, Al Marsa Street, Dubai, United Arab Emirates"
  export HUNDI_ISSUER_LICENCE="Licensed by the Central Bank of the United Arab Emirates, no. 4711"
  # So slow that only the test clock changes a state.
  export HUNDI_TEST_STEP_SECONDS=60 HUNDI_TEST_DATABASE="$folder/hundi.db"
  serve 60000
  HUNDI_API_KEY="$HUNDI_API_KEY" node tests/pay_page/states.mjs "$address" target/pay-page
  refuse_panics
)
