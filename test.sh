#!/usr/bin/env bash
# Runs all tests: formatting, lints, the Rust suites, the OpenAPI document against the running server, and the pages in
# Chromium. Installs what the tests need and is missing. With --quick it leaves out what CONTRIBUTING.md lists.
set -euo pipefail
cd "$(dirname "$0")"

quick=false
[ "${1:-}" = "--quick" ] && quick=true

# Prints the step that begins, and the seconds since the start.
say() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

# Runs a script of tests. With nextest's profile `ci`, which repeats a failed test once, a failed script is repeated once
# too, and listed at the end if it then passes: a flaky test has to be fixed, but it does not stop the run.
# A script that hangs is ended after 15 minutes; the slowest takes three.
flaky=()
try() {
  local limit=(timeout --kill-after=30 900)
  "${limit[@]}" "$@" && return
  [ "${NEXTEST_PROFILE:-}" = ci ] || return 1
  say "$* failed; once more"
  "${limit[@]}" "$@" || return 1
  flaky+=("$*")
}

# Installs a Debian package if its command is missing.
need() {
  local command=$1 package=$2
  command -v "$command" >/dev/null && return
  local sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -q && $sudo apt-get install -y -q "$package"
}

need cc build-essential
need prlimit util-linux
need python3 python3
need npm npm
tests/chain/install.sh
tests/postgres/install.sh
need pdftotext poppler-utils

if ! $quick; then
  say "format"
  cargo fmt --check
  say "lints"
  cargo clippy --all-targets --locked -- -D warnings
fi

say "schemas of the bank's files"
tests/iso20022/xsd.sh
# With this set, tests that need a missing schema fail. Otherwise they are skipped with a message.
export HUNDI_TEST_SCHEMAS_REQUIRED=1
# The same for a missing PgBouncer.
export HUNDI_TEST_POOLER_REQUIRED=1

# One PostgreSQL for the whole run. It removes itself when its standard input ends, so when this script ends in any way.
# It lies in memory if there is room for it: each test makes a database, which is some hundred files.
cluster=$(mktemp)
memory_mebibytes=$(df --output=avail --block-size=1M /dev/shm 2>/dev/null | tail -n 1 || true)
folder=${TMPDIR:-/tmp}
[ "${memory_mebibytes:-0}" -lt 4096 ] || folder=/dev/shm
exec {cluster_input}> >(TMPDIR=$folder exec tests/postgres/cluster.sh > "$cluster")
for _ in $(seq 600); do
  [ -s "$cluster" ] && break
  sleep 0.1
done
read -r HUNDI_TEST_POSTGRES _ < "$cluster" || { echo "PostgreSQL did not start" >&2; exit 1; }
rm "$cluster"
export HUNDI_TEST_POSTGRES

# The statements that run are recorded, for the last of these tests.
statements=$(mktemp -d)
export HUNDI_TEST_STATEMENTS="$statements"

say "tests"
if cargo nextest --version >/dev/null 2>&1; then
  cargo nextest run --locked
else
  # The same tests with Rust's own runner.
  cargo test --locked --quiet
fi

say "the tests over HTTP on PostgreSQL"
if cargo nextest --version >/dev/null 2>&1; then
  HUNDI_TEST_STORE=postgres cargo nextest run --locked --test http --test iso20022 --test malformed
else
  HUNDI_TEST_STORE=postgres cargo test --locked --quiet --test http --test iso20022 --test malformed
fi

say "every statement on both stores"
cargo test --locked --quiet --test postgres -- --ignored every_statement_prepares_on_both_stores
unset HUNDI_TEST_STATEMENTS
rm -rf "$statements"

if ! $quick; then
  say "the OpenAPI document against the running server"
  tools=target/python-tools
  if [ ! -x "$tools/bin/schemathesis" ]; then
    python3 -m venv "$tools" 2>/dev/null || { need pip3 python3-venv; python3 -m venv "$tools"; }
    "$tools/bin/pip" install -q -r tests/openapi/requirements.txt
  fi
  try tests/openapi/run.sh "$tools/bin"
  try tests/openapi/examples.sh

  say "linters and generators of clients on the OpenAPI document"
  need java default-jre-headless
  need go golang-go
  need node nodejs
  try tests/openapi/generators.sh

  say "the code of the guides for callers"
  need openssl openssl
  need node nodejs
  try tests/guides/run.sh "$tools/bin"

  say "the clients for Python and TypeScript"
  try clients/run.sh

  say "the commands of docs/connect-your-bank.md"
  need curl curl
  try tests/iso20022/page.sh
  if tests/iso20022/page.sh break > /dev/null 2>&1; then
    echo "a broken command of the page was not noticed" >&2 && exit 1
  fi

  say "alert rules and their runbooks"
  need promtool prometheus
  try tests/deploy/alerts.sh

  say "two nodes behind nginx"
  try tests/deploy/run.sh

  say "what is released"
  try tests/deploy/release.sh

  say "the payer's page in a browser"
  need chromium chromium
  need node nodejs
  try tests/pay_page/run.sh

  say "the documentation for callers in a browser"
  try tests/guides/pages.sh

  say "the operator's console in a browser"
  try tests/console/run.sh

  say "the pictures in README.md"
  try docs/images/screens.sh --check

  say "fail-overs of a Patroni cluster"
  if [ -x /usr/bin/patroni ] && [ -x /usr/bin/etcd ]; then
    if cargo nextest --version >/dev/null 2>&1; then
      cargo nextest run --locked --run-ignored only --test postgres \
        -E 'test(nothing_is_lost_whatever_happens_to_a_patroni_cluster)'
    else
      cargo test --locked --quiet --test postgres -- --ignored --nocapture nothing_is_lost_whatever_happens_to_a_patroni_cluster
    fi
  else
    echo "LEFT OUT: Patroni and etcd are not installed and could not be" >&2
  fi

  if cargo deny --version >/dev/null 2>&1; then
    say "dependencies"
    # The check of advisories downloads their database. Without a network, only the other three run.
    cargo deny --offline --locked check bans licenses sources
  fi
fi

if [ "${#flaky[@]}" -gt 0 ]; then
  say "flaky: these passed only when they were run once more"
  printf '%s\n' "${flaky[@]}"
fi
