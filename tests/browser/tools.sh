# Installs what drives the browser, below target/. To be sourced from the project's folder. Scripts in Node import
# tests/browser/page.mjs, which finds it by HUNDI_TEST_BROWSER_TOOLS.
export HUNDI_TEST_BROWSER_TOOLS=target/browser-tools
if ! cmp -s tests/browser/package-lock.json "$HUNDI_TEST_BROWSER_TOOLS/installed-lock.json"; then
  mkdir -p "$HUNDI_TEST_BROWSER_TOOLS"
  cp tests/browser/package.json tests/browser/package-lock.json "$HUNDI_TEST_BROWSER_TOOLS/"
  npm ci --prefix "$HUNDI_TEST_BROWSER_TOOLS" --ignore-scripts --no-audit --no-fund --loglevel=error
  cp tests/browser/package-lock.json "$HUNDI_TEST_BROWSER_TOOLS/installed-lock.json"
fi
