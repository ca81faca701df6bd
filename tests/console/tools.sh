# Installs the browser driver below target/, and starts a server with the console and its operators. Source it from the
# project's folder. Sets `address` and `console`.
source tests/browser/tools.sh

[ -n "${HUNDI_TEST_BUILT:-}" ] || cargo build --locked --quiet
source tests/serve.sh
export HUNDI_CONSOLE_LISTEN=127.0.0.1:0 HUNDI_FOUR_EYES_ABOVE=100.00
serve 50
for _ in $(seq 1200); do
  grep -qs '^console at ' "$folder/out" && break
  sleep 0.05
done
console=$(sed -n 's|^console at \(http.*\)/console$|\1|p' "$folder/out")
export HUNDI_TEST_DATABASE="$folder/hundi.db" HUNDI_API_KEY HUNDI_TEST_PASSWORD="correct horse battery staple" HUNDI_TEST_SUSPECT="Test Possibly Sanctioned"
for operator in "asha operator" "vijay viewer" "meera approver" "ravi approver" "tara viewer" "nila admin"; do
  read -r name role <<< "$operator"
  printf %s "$HUNDI_TEST_PASSWORD" \
    | target/debug/hundi operators create "$name" --role "$role" --password-stdin --actor asha --reason "the checks" \
      --database "sqlite:$folder/hundi.db" > "$folder/made"
done
