# Installs the browser driver below target/. Source it from the project's folder. Node scripts import
# tests/browser/page.mjs, which finds the driver by HUNDI_TEST_BROWSER_TOOLS.

# Installs the packages that the lock file in $1 names below $2, unless they are there.
install_packages() {
  cmp -s "$1/package-lock.json" "$2/installed-lock.json" && return
  mkdir -p "$2"
  cp "$1/package.json" "$1/package-lock.json" "$2/"
  npm ci --prefix "$2" --ignore-scripts --no-audit --no-fund --loglevel=error
  cp "$1/package-lock.json" "$2/installed-lock.json"
}

export HUNDI_TEST_BROWSER_TOOLS=target/browser-tools
install_packages tests/browser "$HUNDI_TEST_BROWSER_TOOLS"
