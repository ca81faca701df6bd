# Starts a server on a temporary database for the script that sources this. The server ends with the script.
# After `serve`, `folder` is its folder, `address` where it listens and `HUNDI_API_KEY` its test key.

folder=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT

# $1: milliseconds of a step of the simulation.
serve() {
  HUNDI_RATE_LIMIT_READS=0 HUNDI_RATE_LIMIT_WRITES=0 HUNDI_SIMULATION_STEP_MILLISECONDS=$1 \
    target/debug/hundi serve --listen 127.0.0.1:0 --database "sqlite:$folder/hundi.db" > "$folder/out" 2> "$folder/log" &
  server=$!
  for _ in $(seq 1200); do
    grep -qs '^listening on ' "$folder/out" && [ -s "$folder/hundi.db.first-key" ] && break
    kill -0 "$server" 2> /dev/null || break
    sleep 0.05
  done
  if ! [ -s "$folder/hundi.db.first-key" ]; then
    echo "the server did not start:" && cat "$folder/log" && exit 1
  fi
  address=$(sed -n 's/^listening on //p' "$folder/out")
  HUNDI_API_KEY=$(cat "$folder/hundi.db.first-key")
}

refuse_panics() {
  if grep -q panicked "$folder/log"; then
    echo "the server panicked:" && cat "$folder/log" && exit 1
  fi
}
