# peers.sh - the real programs we compare ourselves with, unpacked into the cache folder.
. "$top/scripts/lib/debian.sh"

peers=$cache/peers
prometheus=$peers/usr/bin/prometheus
promtool=$peers/usr/bin/promtool
victoria_metrics=$peers/usr/bin/victoria-metrics
old_peers=$cache/peers-bookworm
node_exporter=$cache/node-exporter

peers_ensure() {
    unpack_packages forky "$peers" prometheus promtool victoria-metrics
    local program
    for program in "$prometheus" "$promtool" "$victoria_metrics"; do
        [ -x "$program" ] || die "$program is missing: remove $peers and run the same command again"
    done
}

# The Prometheus of Debian 12, for what senders of another age do.
old_prometheus_ensure() {
    unpack_packages bookworm "$old_peers" prometheus
    [ -x "$old_peers/usr/bin/prometheus" ] || die "$old_peers has no prometheus: remove it and run again"
}

# A source of real metrics.
node_exporter_ensure() {
    unpack_packages bookworm "$node_exporter" prometheus-node-exporter
    [ -x "$node_exporter/usr/bin/prometheus-node-exporter" ] || die "$node_exporter is not whole: remove it and run again"
}
