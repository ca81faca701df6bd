#!/usr/bin/env bash
# Fuzzes each reader of outside files for the given number of seconds (default 60), starting from the tests' own files.
# Needs a nightly compiler and cargo-fuzz. Findings are in target/fuzz; add a file that breaks a reader to the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
work=target/fuzz
mkdir -p "$work"/{bank_report,sanctions_list}
cp tests/iso20022/corpus/*.xml tests/iso20022/outside/*.xml "$work/bank_report/"
number=0
for name in sdn.csv alt.csv add.csv sdn_comments.csv consolidated.xml operator.csv; do
  { printf %s "$number"; cat "tests/fixtures/screening/$name"; } >"$work/sanctions_list/$name"
  number=$((number + 1))
done
for target in bank_report sanctions_list; do
  cargo +nightly fuzz run --target-dir "$work/build" "$target" "$work/$target" -- -max_total_time="$seconds" -max_len=65536 -print_final_stats=1
done
