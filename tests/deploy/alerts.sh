#!/usr/bin/env bash
# Checks that promtool reads the alert rules, that every alert has a runbook, and that every metric exists that a rule,
# the dashboard or a document names. The metrics of several nodes on one database have to be on the dashboard and in
# docs/postgresql.md.
set -euo pipefail
cd "$(dirname "$0")/../.."

rules=deploy/prometheus/alerts.yaml
promtool check rules "$rules"
promtool test rules tests/deploy/alerts.test.yaml

headings=$(sed -n 's/^### //p' docs/run.md | sort)
alerts=$(sed -n 's/^ *- alert: //p' "$rules" | sort)
if ! diff <(echo "$alerts") <(echo "$headings"); then
  echo "the alerts (<) and the runbooks in docs/run.md (>) differ" >&2
  exit 1
fi

# Names as src/metrics.rs declares them; counters end in _total on the page.
known=$(grep -oE '^ +"[a-z_]+"' src/metrics.rs | tr -d ' "' | sort -u)
named=$(grep -ohE 'hundi_[a-z_]+' "$rules" deploy/grafana/hundi.json | sort -u)
named+=" "$(grep -ohE '`hundi_[a-z_]+[`{]' docs/*.md | tr -d '`{' | grep -v '^hundi_service$' | sort -u)
for name in $named; do
  bare=${name#hundi_}
  bare=${bare%_total}
  bare=${bare%_bucket}
  grep -qx "$bare" <<< "$known" || { echo "$name is no metric of src/metrics.rs" >&2; exit 1; }
done

for bare in $(grep -xE '(database_|lease).*|old_primaries.*' <<< "$known"); do
  for place in deploy/grafana/hundi.json docs/postgresql.md; do
    grep -q "hundi_$bare" "$place" || { echo "$place does not show hundi_$bare" >&2; exit 1; }
  done
done
