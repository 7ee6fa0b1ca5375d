# debian.sh - packages of another Debian release, without touching the machine's apt configuration.

# A private apt view of suite $2 in folder $1, on the mirror this machine already uses. Sets the array
# `private_apt` to the options that make apt-get use it; the caller runs `update` first.
private_apt() {
    local folder=$1 suite=$2 mirror
    # Debian's cloud images name a file of mirrors instead of one.
    mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -m 1 -E '/debian(\.list)?/?$') ||
        die "no Debian mirror in the apt configuration: add one to the machine's sources and run again"
    mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
    local signed='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
    printf 'deb %s %s %s main\ndeb-src %s %s %s main\n' \
        "$signed" "$mirror" "$suite" "$signed" "$mirror" "$suite" >"$folder/sources.list"
    private_apt=(-o "Dir::Etc::SourceList=$folder/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$folder/lists" -o "Dir::Cache=$folder/cache" -o APT::Sandbox::User=root
        # A mirror that lags behind has a signed but outdated index: good enough here.
        -o Acquire::Check-Valid-Until=false)
}

# Unpack programs of Debian packages from suite $1 into folder $2, once. They are not installed.
# Callers ask `unpack_packages ... || skip`, where bash ignores errexit: every step says what it is worth.
# usage: unpack_packages SUITE FOLDER PACKAGE...
unpack_packages() (
    suite=$1 folder=$2
    shift 2
    exec 8>"$folder.lock" && flock 8 || exit 1 # several tests may want it at once
    [ -e "$folder/.complete" ] && exit 0
    work=$(mktemp -d "$cache/unpack.XXXXXX") || exit 1
    trap 'rm -rf "$work"' EXIT
    private_apt "$work/apt" "$suite"
    long_step "fetching the package list of $suite" "$cache/unpack-update.log" \
        apt-get "${private_apt[@]}" update
    cd "$work" || exit 1
    long_step "downloading $*" "$cache/unpack-download.log" apt-get "${private_apt[@]}" download "$@"
    rm -rf "$folder"
    mkdir -p "$folder" || exit 1
    for deb in ./*.deb; do dpkg -x "$deb" "$folder" || exit 1; done
    touch "$folder/.complete"
)
