#!/usr/bin/env bash
# Builds a release in target/release-files: an archive, a Debian package, a list of everything inside the binary (SBOM,
# CycloneDX) and checksums. Needs cargo-deb and cargo-cyclonedx. If they are missing, it builds them in
# target/release-tools, which takes about three minutes on two cores.
# With --binary FILE it packs a binary that is already built.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=
[ "${1:-}" = "--binary" ] && binary=$2

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
HUNDI_COMMIT=${HUNDI_COMMIT:-$(git rev-parse --short=12 HEAD)}
export HUNDI_COMMIT
# Files get the time of the commit, so that a commit always makes the same archive.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

export PATH="$PWD/target/release-tools/bin:$PATH"
for tool in cargo-deb@3.8.0 cargo-cyclonedx@0.5.9; do
  command -v "${tool%@*}" >/dev/null || cargo install --locked --root target/release-tools "$tool"
done

if [ -z "$binary" ]; then
  cargo build --release --locked --bin hundi
  binary=target/release/hundi
fi

packed=target/packed
rm -rf "$packed"
mkdir -p "$packed/completions"
install -m 755 "$binary" "$packed/hundi"
strip "$packed/hundi"
"$packed/hundi" man "$packed/man"
"$packed/hundi" completions bash > "$packed/completions/hundi.bash"
"$packed/hundi" completions zsh > "$packed/completions/_hundi"
"$packed/hundi" completions fish > "$packed/completions/hundi.fish"
# The package's unit: its binary is elsewhere, and secrets come as credentials (deploy/credentials.conf).
sed 's|/usr/local/bin/hundi|/usr/bin/hundi|; /^EnvironmentFile=/d' deploy/hundi.service > "$packed/hundi.service"

files=target/release-files
rm -rf "$files"
mkdir -p "$files"
machine=$(uname -m)
name=hundi-$version-$machine-linux

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/$name"
cp -r "$packed"/{hundi,man,completions} README.md CHANGELOG.md SECURITY.md LICENSE hundi.example.toml docs deploy "$tree/$name/"
# What the documents name beside those.
cp --parents bench/{README,names}.md data/ifsc/{README.md,refresh.sh} "$tree/$name/"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$tree" -cf - "$name" | gzip -n9 > "$files/$name.tar.gz"

cargo deb --no-build --no-strip --locked --output "$files/hundi_${version}_$(dpkg --print-architecture).deb"

cargo cyclonedx --format json --spec-version 1.5 --target "$(rustc -vV | sed -n 's/^host: //p')" --override-filename hundi.cdx
mv hundi.cdx.json "$files/$name.cdx.json"

(cd "$files" && sha256sum -- * > SHA256SUMS && cat SHA256SUMS)
"$packed/hundi" --version
