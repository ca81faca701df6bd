#!/usr/bin/env bash
# Lints the OpenAPI document by the recommended rules of Redocly and Spectral, and lets real generators make clients
# of it, as it is. Every client is compiled or imported. Two of them make the six steps against a server of their own.
# The tools are installed into target/openapi-generators, once.
set -euo pipefail
cd "$(dirname "$0")/../.."
tests=$PWD/tests/openapi
tools=$PWD/target/openapi-generators
mkdir -p "$tools"
cargo build --locked --quiet
source tests/serve.sh

say() { printf -- '-- %s\n' "$*"; }

npm_packages="openapi-typescript@7.13.0 @hey-api/openapi-ts@0.95.0 typescript@5.9.3 @types/node@20.19.25
@redocly/cli@2.77.0 @stoplight/spectral-cli@6.16.3"
if [ "$(cat "$tools/npm-packages" 2>/dev/null)" != "$npm_packages" ]; then
  # Quoted nowhere: one word each.
  npm install --no-audit --no-fund --silent --prefix "$tools" $npm_packages
  printf '%s' "$npm_packages" > "$tools/npm-packages"
fi
if ! cmp -s "$tests/generators.txt" "$tools/python-packages"; then
  python3 -m venv "$tools/python"
  "$tools/python/bin/pip" install --quiet -r "$tests/generators.txt"
  cp "$tests/generators.txt" "$tools/python-packages"
fi
export PATH="$tools/node_modules/.bin:$tools/python/bin:$PATH"
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true

cd "$folder"
"$OLDPWD/target/debug/hundi" openapi > openapi.json

say "Redocly, recommended rules"
redocly lint openapi.json --extends=recommended --format=stylish > redocly.out 2>&1 || { cat redocly.out; exit 1; }
# It fails on errors only.
if grep -qi 'warning' <(grep -vi 'deprecation' redocly.out); then cat redocly.out && exit 1; fi
say "Spectral, recommended rules"
echo 'extends: ["spectral:oas"]' > spectral.yaml
spectral lint openapi.json --ruleset spectral.yaml --fail-severity=hint --quiet

say "openapi-typescript"
openapi-typescript openapi.json -o typescript/api.ts > typescript.out 2>&1 || { cat typescript.out; exit 1; }
tsc --noEmit --strict typescript/api.ts

say "hey-api"
openapi-ts -i openapi.json -o hey/client -c @hey-api/client-fetch > hey.out 2>&1 || { cat hey.out; exit 1; }
cp "$tests/six_steps.ts" hey/
tsc --strict --target es2022 --lib es2022,dom,dom.iterable --module commonjs --moduleResolution node10 --esModuleInterop \
  --types node --typeRoots "$tools/node_modules/@types" --outDir hey/built hey/six_steps.ts

say "openapi-python-client"
openapi-python-client generate --path openapi.json --output-path python --fail-on-warning > python.out 2>&1 \
  || { cat python.out; exit 1; }
(cd python && python "$tests/import_all.py")

generate() {
  say "openapi-generator, $1"
  openapi-generator-cli generate -i openapi.json -g "$1" -o "generator-$1" > "generator-$1.out" 2>&1 \
    || { cat "generator-$1.out"; exit 1; }
  # One file of the client written twice.
  if grep -q FILEPATH_COLLISION "generator-$1.out"; then cat "generator-$1.out" && exit 1; fi
}
generate python
(cd generator-python && python "$tests/import_all.py")
generate typescript-fetch
tsc --noEmit --strict --target es2022 --lib es2022,dom --module esnext --moduleResolution bundler \
  generator-typescript-fetch/index.ts
generate go
(cd generator-go && GOFLAGS=-mod=mod GOPROXY=off GOCACHE="$tools/go-cache" go vet .)
generate rust
# Without TLS, which would need more packages of the system; with the versions that were tried.
cp "$tests/generated-rust.lock" generator-rust/Cargo.lock
(cd generator-rust && CARGO_TARGET_DIR="$tools/rust-target" cargo check --quiet --no-default-features)

say "six steps with the clients of hey-api and openapi-python-client"
cd "$OLDPWD"
serve 5
(cd "$folder/python" && HUNDI_URL=$address HUNDI_API_KEY=$HUNDI_API_KEY python "$tests/six_steps.py")
HUNDI_URL=$address HUNDI_API_KEY=$HUNDI_API_KEY node "$folder/hey/built/six_steps.js"
refuse_panics
