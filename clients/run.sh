#!/usr/bin/env bash
# Tests the Python and the TypeScript client and the Rust types against a server of its own, and that the types are the
# document's.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --locked --quiet
source tests/serve.sh
target/debug/hundi openapi > "$folder/openapi.json"
python3 clients/generate.py "$folder/openapi.json" --check
tools=target/python-client
if [ ! -x "$tools/bin/pytest" ]; then
  python3 -m venv "$tools"
fi
"$tools/bin/pip" install -q -e "clients/python[test]" mypy==2.4.1
(cd clients/typescript && npm ci --silent --no-audit --no-fund)

serve 5
export HUNDI_BASE_URL=$address HUNDI_API_KEY HUNDI_OPENAPI=$folder/openapi.json
"$tools/bin/mypy" --strict clients/python/src clients/python/tests/typed_lists.py
"$tools/bin/pytest" -q clients/python/tests
(cd clients/typescript && npm run --silent build && npm test --silent)
cargo test --quiet --locked --manifest-path clients/rust/Cargo.toml --target-dir target/rust-client
refuse_panics
