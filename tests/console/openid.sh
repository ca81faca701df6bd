#!/usr/bin/env bash
# Signs in to the console at a real OpenID Connect provider (oidc-provider, from npm) in Chromium.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/browser/tools.sh
export HUNDI_TEST_PROVIDER_TOOLS=target/provider-tools
install_packages tests/console "$HUNDI_TEST_PROVIDER_TOOLS"
[ -n "${HUNDI_TEST_BUILT:-}" ] || cargo build --locked --quiet
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
node tests/console/openid.mjs "$folder"
if grep -q panicked "$folder/log"; then
  echo "the server panicked:" && cat "$folder/log" && exit 1
fi
