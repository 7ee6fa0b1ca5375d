# common.sh - what the scripts share: where things are, how they speak, how they fail.
# Source it; it sets `top` (the checkout) and `cache` (downloads and builds kept between checkouts).
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${PROMFABRIC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/promfabric}
jobs=${PROMFABRIC_JOBS:-$(nproc)}
mkdir -p "$cache"

say() { printf '==> %s\n' "$*" >&2; }

# The last line of a failed script says what to do about it.
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Run a command as root: directly, or through sudo (which drops the environment). apt-get asks nothing:
# its questions would go into a log file.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    elif command -v sudo >/dev/null; then
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    else
        die "installing packages needs root: run this script as root or install sudo"
    fi
}

# Run a long step with its output in a log file. A line every half minute tells how far it is.
# usage: long_step NAME LOGFILE COMMAND...
long_step() {
    local name=$1 log=$2 start=$SECONDS pid
    shift 2
    say "$name (log: $log)"
    "$@" >"$log" 2>&1 &
    pid=$!
    local next=30
    while kill -0 "$pid" 2>/dev/null; do
        sleep 1
        if [ $((SECONDS - start)) -ge "$next" ]; then
            next=$((next + 30))
            say "$name: $((SECONDS - start)) s so far; $(tail -n 1 "$log" | cut -c1-90)"
        fi
    done
    if ! wait "$pid"; then
        tail -n 25 "$log" >&2
        die "$name failed: see $log, mend what it names, then run the same command again"
    fi
    say "$name: done in $((SECONDS - start)) s"
}
