#!/usr/bin/env bash
# Writes data/ifsc/directory.bin anew from the pinned `ifsc` crate, and notes beside it what it holds.
# To take a newer one: raise the version in export/Cargo.toml, run this, and read the counts that it prints.
set -euo pipefail
cd "$(dirname "$0")"

cargo build --quiet --release --locked --manifest-path export/Cargo.toml --target-dir ../../target/ifsc-export
export=../../target/ifsc-export/release/ifsc-export
csv=$(mktemp)
trap 'rm -f "$csv"' EXIT
"$export" > "$csv"
{ read -r as_of; read -r source; } < <("$export" --about)

cargo run --quiet --manifest-path ../../Cargo.toml -- ifsc-pack "$csv" directory.bin --as-of "$as_of" --source "$source"
(
  echo "as of:     $as_of"
  echo "source:    $source"
  echo "through:   the Rust registry, crate ifsc $(sed -n 's/^ifsc = "=\(.*\)"$/\1/p' export/Cargo.toml)"
  echo "branches:  $(($(wc -l < "$csv") - 1))"
  echo "bytes:     $(stat -c %s directory.bin)"
  echo "sha256:    $(sha256sum directory.bin | cut -d' ' -f1)"
) > directory.txt
cat directory.txt
