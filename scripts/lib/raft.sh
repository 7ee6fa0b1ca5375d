# raft.sh - have the consensus library cowsql/raft, with its pure core raft_step(), on this machine.
#
# Debian 12 itself has 0.15, which lacks raft_step(); its backports have what we need. The package is
# unpacked into the cache folder, once, and linked statically: nothing of it is installed.
. "$top/scripts/lib/debian.sh"

raft_prefix=$cache/raft
raft_suite=bookworm-backports

raft_ensure() {
    unpack_packages "$raft_suite" "$raft_prefix" libraft-dev
    grep -qs raft_step "$raft_prefix/usr/include/raft.h" ||
        die "$raft_prefix has no raft.h with raft_step(): remove that folder and run the same command again"
}
