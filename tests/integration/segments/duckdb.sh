# duckdb.sh - DuckDB from npm in the cache folder, outside the checkout.
set -euo pipefail
duckdb=${PROMFABRIC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/promfabric}/duckdb

skip() {
    echo "SKIPPED: $*"
    exit 77
}

duckdb_ensure() {
    command -v node >/dev/null || skip "no node on this machine"
    mkdir -p "$duckdb"
    exec 9>"$duckdb/.lock"
    flock 9 # several tests may want it at once
    if [ ! -d "$duckdb/node_modules/@duckdb/node-api" ]; then
        command -v npm >/dev/null || skip "no npm on this machine"
        (cd "$duckdb" && timeout 180 npm install --no-audit --no-fund @duckdb/node-api >npm.log 2>&1) ||
            skip "npm cannot fetch @duckdb/node-api (see $duckdb/npm.log)"
    fi
    flock -u 9
}
