#!/usr/bin/env bash
# Runs the commands of docs/connect-your-bank.md as a reader would paste them: every block marked `sh`, in one shell and an
# empty folder. With `break` as its argument it shows that a failing command is noticed.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' docs/connect-your-bank.md > "$folder/page.sh"
[ "$(grep -c . "$folder/page.sh")" -gt 40 ] || { echo "the page has too few commands" >&2; exit 1; }
grep -q 'hundi reconcile' "$folder/page.sh"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
sed -i "s/18080/$port/g" "$folder/page.sh"
[ "${1-}" != break ] || sed -i 's/"YESB0000001"/"YESB"/' "$folder/page.sh"

export PATH="$PWD/target/debug:$PATH"
mkdir "$folder/trial"
# Job control as in a terminal, for `kill %1`. After a failed command, what still runs is ended too.
run() {
  (cd "$folder/trial" && timeout 180 bash -c 'set -eu; set -m
    trap "exit 1" TERM
    trap "kill \$(jobs -p) 2>/dev/null || true" EXIT
    . ../page.sh') > "$folder/out" 2>&1
}
if ! run; then
  echo "a command of docs/connect-your-bank.md failed:" >&2
  cat "$folder/out" "$folder"/trial/*.log >&2 2>/dev/null || true
  exit 1
fi
for wanted in '"unique_transaction_reference": *"TESTN' 'debit 1.00 on .* UTR TESTN' 'no differences'; do
  grep -q "$wanted" "$folder/out" || { echo "the commands did not show $wanted" >&2; cat "$folder/out" >&2; exit 1; }
done
if grep -q panicked "$folder"/trial/*.log; then
  cat "$folder"/trial/*.log >&2
  exit 1
fi
