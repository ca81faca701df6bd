#!/usr/bin/env bash
# Makes tests/chain/contracts.json from tests/chain/contracts/*.sol. The tests use the committed result, so run
# this only after a contract has changed. The compiler and the library come from npm, pinned, into target/chain-compiler.
set -euo pipefail
cd "$(dirname "$0")"

tools=../../target/chain-compiler
mkdir -p "$tools"
cp compiler/package.json compiler/package-lock.json "$tools/"
npm --prefix "$tools" ci --ignore-scripts --no-audit --no-fund --loglevel=error
node compiler/compile.cjs "$tools" contracts > "$tools/contracts.json"
mv "$tools/contracts.json" contracts.json
