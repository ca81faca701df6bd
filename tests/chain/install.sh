#!/usr/bin/env bash
# Installs the local node that the chain tests run, from npm, pinned, into target/chain-tools. Does nothing if it is already there.
set -euo pipefail
cd "$(dirname "$0")"

tools=../../target/chain-tools
mkdir -p "$tools"
if cmp -s package-lock.json "$tools/installed.json"; then
  exit 0
fi
command -v npm >/dev/null || { echo "the chain tests need npm (Debian: apt-get install npm)" >&2; exit 1; }
cp package.json package-lock.json "$tools/"
# Not `npm ci`: the lock file has the binary's package for one platform only, and `ci` needs all of them.
# The package's own script only looks for that binary.
npm --prefix "$tools" install --ignore-scripts --no-audit --no-fund --loglevel=error
cp package-lock.json "$tools/installed.json"
