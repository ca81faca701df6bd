#!/usr/bin/env bash
# Downloads the public ISO 20022 schemas and installs xmllint, which the tests of written files need. The schemas belong to
# ISO, so they are not in this repository: a pinned package ships them for its own tests, and their hashes are checked.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! command -v xmllint >/dev/null; then
  sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -q && $sudo apt-get install -y -q libxml2-utils
fi

target=${CARGO_TARGET_DIR:-target}/iso20022-xsd
check() { (cd "$target" && sha256sum --check --quiet --strict) < tests/iso20022/xsd.sha256; }
if [ -d "$target" ] && check 2>/dev/null; then exit 0; fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/src" "$target"
touch "$folder/src/lib.rs"
printf '[package]\nname = "schemas"\nversion = "0.0.0"\nedition = "2024"\n[dependencies]\nsepa = "=0.9.0"\n[workspace]\n' > "$folder/Cargo.toml"
(cd "$folder" && cargo vendor --quiet vendor > /dev/null)
for message in pain.001.001.09 pain.002.001.10 camt.053.001.08 camt.054.001.08; do
  cp "$folder/vendor/sepa/tests/xsd/$message.xsd" "$target/"
done
# The older payment message is in another package.
python3 -m venv "$folder/python" 2>/dev/null || {
  sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -q && $sudo apt-get install -y -q python3-venv python3-pip
  python3 -m venv "$folder/python"
}
"$folder/python/bin/pip" --quiet --disable-pip-version-check download --no-deps --dest "$folder/wheel" sepaxml==2.7.0
python3 -m zipfile --extract "$folder"/wheel/*.whl "$folder/sepaxml"
cp "$folder/sepaxml/sepaxml/schemas/pain.001.001.03.xsd" "$target/"
check
