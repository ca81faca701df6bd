#!/usr/bin/env bash
# Lints the OpenAPI document and lets real generators make clients of it: TypeScript, which is compiled, and Python,
# every module of which is imported. The tools are installed into target/openapi-generators, once.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools=target/openapi-generators
mkdir -p "$tools"
cargo build --locked --quiet
target/debug/hundi openapi > "$tools/openapi.json"

if [ ! -x "$tools/node_modules/.bin/redocly" ]; then
  npm install --no-audit --no-fund --silent --prefix "$tools" openapi-typescript@7.13.0 typescript@5.9.3 \
    @redocly/cli@2.77.0
fi
if [ ! -x "$tools/python/bin/openapi-python-client" ]; then
  python3 -m venv "$tools/python"
  "$tools/python/bin/pip" install --quiet openapi-python-client==0.29.1 ruff==0.17.6
fi

cd "$tools"
node_modules/.bin/redocly lint openapi.json --extends=recommended
node_modules/.bin/openapi-typescript openapi.json -o api.ts
node_modules/.bin/tsc --noEmit --strict api.ts
rm -rf client
PATH="$PWD/python/bin:$PATH" python/bin/openapi-python-client generate --path openapi.json --output-path client
(cd client && ../python/bin/python - <<'PYTHON')
import importlib
import pathlib
import pkgutil

[folder] = [path for path in pathlib.Path(".").iterdir() if (path / "client.py").exists()]
package = importlib.import_module(folder.name)
modules = [module.name for module in pkgutil.walk_packages(package.__path__, f"{folder.name}.")]
for module in modules:
    importlib.import_module(module)
print(f"{len(modules)} modules of the Python client were imported")
PYTHON
