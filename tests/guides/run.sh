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
cargo build --locked --quiet --example receive_webhooks --message-format=json > "$work/built"
# The guides call the service's binary by its name, which keeps its place in a file below this folder.
export PATH="$PWD/target/debug:$PATH" XDG_STATE_HOME="$work/state"
ln -s "$PWD/tests/guides/node_modules/.bin/tsc" "$work/tsc"
ln -s "$PWD/tests/guides/node_modules/@types" "$work/types"
ln -s "$PWD/tests/guides/node_modules" "$work/node_modules"
ln -s "$PWD/target/debug/examples" "$work/examples"
source tests/serve.sh
serve 5
# The lines that a first start prints lead to a UTR, and so do those with curl.
sed -n 's/^    //p' "$folder/out" > "$folder/first.sh"
timeout 60 bash -euo pipefail "$folder/first.sh" | grep -qx 'UTR  *TEST[A-Z0-9]*'
export HUNDI_API_KEY
HUNDI_BASE_URL=$address hundi quickstart --curl > "$folder/curl.sh"
timeout 60 bash -euo pipefail "$folder/curl.sh" | tail -n 1 | grep -qx '"unique_transaction_reference":"TEST[A-Z0-9]*"'
# A refused step shows why, and no further step runs.
sed 's|/deposit" -d .{}.|/deposit" -d "{\\"amount\\": 1}"|' "$folder/curl.sh" > "$folder/refused.sh"
! cmp -s "$folder/curl.sh" "$folder/refused.sh"
if timeout 60 bash "$folder/refused.sh" > "$folder/refused" 2>&1; then exit 1; fi
grep -q 'parameter_type_invalid\|parameter_value_invalid' "$folder/refused"
if grep -q 'unique_transaction_reference' "$folder/refused"; then exit 1; fi
# A beneficiary whose name does not match is not waited for.
sed 's|50100012345678|50100012340002|' "$folder/curl.sh" > "$folder/mismatch.sh"
if timeout 60 bash "$folder/mismatch.sh" > "$folder/refused" 2>&1; then exit 1; fi
grep -q '"status":"input_required"' "$folder/refused" && ! grep -q transfers/ "$folder/refused"
echo "the lines that a first start prints led to a UTR, and so did those with curl"
"$tools/python3" tests/guides/run.py docs/guides "$address" "$HUNDI_API_KEY" "$work"
"$tools/python3" tests/guides/receivers.py docs/guides "$address" "$HUNDI_API_KEY" "$work" "$work/built"
"$tools/python3" tests/guides/killed.py docs/guides "$address" "$HUNDI_API_KEY" "$work"
refuse_panics
rm -r "$work"
