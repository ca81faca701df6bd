#!/usr/bin/env bash
# Packs the tests' binary as deploy/release.sh packs a release, and checks the result.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ -n "${HUNDI_BINARY:-}" ] || cargo build --locked --quiet --bin hundi
deploy/release.sh --binary "${HUNDI_BINARY:-target/debug/hundi}"

files=target/release-files
(cd "$files" && sha256sum --check --quiet SHA256SUMS)

# Reads everything first: a reader that ends early would kill the writer with SIGPIPE.
holds() { grep -q -- "$2" <<< "$1" || { echo "$3 lacks $2" >&2; exit 1; }; }
archive=$(tar -tzf "$files"/hundi-*.tar.gz)
for file in /hundi /man/hundi-serve.1 /completions/_hundi /deploy/hundi.service /docs/install.md /LICENSE; do
  holds "$archive" "$file\$" "the archive"
done
package=$(dpkg-deb --contents "$files"/hundi_*.deb)
for file in usr/bin/hundi etc/hundi/hundi.toml usr/lib/systemd/system/hundi.service man1/hundi.1.gz man1/hundi-keys-create.1.gz \
  bash-completion/completions/hundi doc/hundi/docs/install.md; do
  holds "$package" "/$file\$" "the package"
done

# What the package installs works where nothing else of the project is.
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
dpkg-deb --extract "$files"/hundi_*.deb "$root"
"$root/usr/bin/hundi" --version | grep -Eq '^hundi [0-9.]+ \(commit .+, schema [0-9]+\)$'
(cd "$root" && HUNDI_DATABASE=sqlite:hundi.db usr/bin/hundi keys create --config etc/hundi/hundi.toml --mode test | grep -q '^sk_test_')
documents=$root/usr/share/doc/hundi
tests/deploy/packed.py "$documents"
tar -xzf "$files"/hundi-*.tar.gz -C "$root"
tests/deploy/packed.py "$(echo "$root"/hundi-*-linux)"
rm "$documents/deploy/nginx.conf"
if tests/deploy/packed.py "$documents" >/dev/null 2>&1; then
  echo "a file that is missing in the package was not noticed" >&2 && exit 1
fi
if command -v man >/dev/null; then
  man --warnings=w -l "$root/usr/share/man/man1/hundi.1.gz" >/dev/null
fi

# Every package of the lock file that the binary is made of is in the list, with its version.
python3 - "$files"/hundi-*.cdx.json <<'P'
import json, sys
listed = {(part["name"], part["version"]) for part in json.load(open(sys.argv[1]))["components"]}
for name in ("rusqlite", "rustls", "tokio", "tokio-postgres"):
    assert any(known == name for known, _ in listed), f"{name} is not in the list"
assert len(listed) > 100, len(listed)
print(f"{len(listed)} packages are listed")
P
