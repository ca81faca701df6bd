#!/usr/bin/env bash
# Runs the code of the callers' guides in every language that they have, against a server of its own.
# First argument: the folder of the Python tools.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools=$(realpath "$1")

cargo build --locked --quiet --examples --bins
"$tools/python3" -c "import standardwebhooks" 2> /dev/null || "$tools/pip" install -q -r tests/guides/requirements.txt
(cd tests/guides && npm ci --silent --no-audit --no-fund)
work=$(mktemp -d)
# The guides call the service's binary by its name, which keeps its place in a file below this folder.
export PATH="$PWD/target/debug:$PATH" XDG_STATE_HOME="$work/state"
ln -s "$PWD/tests/guides/node_modules/.bin/tsc" "$work/tsc"
ln -s "$PWD/tests/guides/node_modules/@types" "$work/types"
ln -s "$PWD/tests/guides/node_modules" "$work/node_modules"
ln -s "$PWD/target/debug/examples" "$work/examples"
source tests/serve.sh
serve 5
# What a first start prints leads to a UTR, line by line.
sed -n 's/^    //p' "$folder/out" > "$folder/first.sh"
timeout 60 bash -euo pipefail "$folder/first.sh" | tail -n 1 | grep -qx '"unique_transaction_reference":"TEST[A-Z0-9]*"'
echo "the lines that a first start prints led to a UTR"
"$tools/python3" tests/guides/run.py docs/guides "$address" "$HUNDI_API_KEY" "$work"
"$tools/python3" tests/guides/killed.py docs/guides "$address" "$HUNDI_API_KEY" "$work"
refuse_panics
rm -r "$work"
