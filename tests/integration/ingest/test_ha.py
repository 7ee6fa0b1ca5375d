"""test_ha.py - pairs of senders: of replicas that send the same, the elected one is written."""
import unittest

from clusters import ClusterTest
from harness import NodeTest, wait_for
from messages import Series, log_of, now_ms, version_1, version_2, write

DROPPED = "promfabric_ingest_ha_dropped_samples_total"
FAILOVERS = "promfabric_ingest_ha_failovers_total"


def series(replica, ts, value=1.0, cluster="c", name="m", count=1):
    """As a replica sends them; the value says who it is."""
    return [Series({"__name__": name, "__replica__": replica, "cluster": cluster, "i": str(i)},
                   [(ts, value)]) for i in range(count)]


def written(logs, tenant="default"):
    """By time: the values that were written, whatever the partition. No series has the replica's label."""
    found = {}
    for log in logs:
        for (of, labels, ts) in log.samples:
            if of == tenant:
                assert "__replica__" not in dict(labels), labels
                found.setdefault(ts, set()).add(log.value(dict(labels), ts, tenant))
    return found


class Pairs(NodeTest):
    def start(self, *args, lines=""):
        self.file = self.folder + "/limits"
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(lines)
        return self.node(args=["--tenant-limits", self.file, *args]).start("--bootstrap")

    def elected(self, node, tenant="default"):
        status, answer = node.request("GET", "/api/v1/status/ha", headers={"X-Scope-OrgID": tenant})
        self.assertEqual(status, 200, answer)
        return {pair["cluster"]: pair["replica"] for pair in answer["data"]}

    def test_the_elected_replica_is_written_and_the_other_acknowledged(self):
        node, now = self.start("--ha-pairs"), now_ms() - 120000
        for i in range(12):
            ts = now + 5000 * i
            self.assertEqual(write(node, version_1(series("a", ts, 1.0)))[0], 204)
            status, why, headers = write(node, version_2(series("b", ts + 7, 2.0)), 2)
            self.assertEqual((status, headers["X-Prometheus-Remote-Write-Samples-Written"]),
                             (204, "1"), why)
        self.assertEqual(written([log_of(node)]), {now + 5000 * i: {1.0} for i in range(12)})
        self.assertEqual(node.metric(DROPPED), 12)
        self.assertEqual(self.elected(node), {"c": "a"})
        # a falls silent at 55 s: b is written from 30 s behind it on.
        for i in range(12, 24):
            self.assertEqual(write(node, version_1(series("b", now + 5000 * i, 2.0)))[0], 204)
        late = {ts: values for ts, values in written([log_of(node)]).items() if ts > now + 55000}
        self.assertEqual(late, {now + 5000 * i: {2.0} for i in range(18, 24)})
        self.assertEqual(node.metric(FAILOVERS), 1)
        # What a could not send meanwhile comes too late, and is acknowledged like the rest.
        for i in range(12, 24):
            self.assertEqual(write(node, version_1(series("a", now + 5000 * i + 3, 1.0)))[0], 204)
        self.assertEqual({ts for ts, values in written([log_of(node)]).items() if 1.0 in values},
                         {now + 5000 * i for i in range(12)})
        # A restart forgets nothing.
        node.kill()
        node.start()
        self.assertEqual(self.elected(node), {"c": "b"})
        self.assertEqual(write(node, version_1(series("a", now + 120000, 1.0)))[0], 204)
        self.assertEqual(node.metric(DROPPED), 1)

    def test_clusters_and_tenants_are_apart_and_what_is_no_pair_is_written(self):
        node, now = self.start(lines="on ha-pairs=on\n"), now_ms()

        def send(tenant, *of):
            answer = write(node, version_1([s for part in of for s in part]),
                           headers={"X-Scope-OrgID": tenant})
            self.assertEqual(answer[0], 204, answer[1])
        send("on", series("a", now, 1.0, "c1"), series("b", now, 2.0, "c2"))
        send("on", series("b", now + 1, 2.0, "c1"), series("a", now + 1, 1.0, "c2"),
             [Series({"__name__": "alone", "cluster": "c1"}, [(now + 1, 3.0)])])
        self.assertEqual(self.elected(node, "on"), {"c1": "a", "c2": "b"})
        self.assertEqual(self.elected(node, "off"), {})
        self.assertEqual(written([log_of(node)], "on"), {now: {1.0, 2.0}, now + 1: {3.0}})
        # Another tenant has not asked for it: both are written, with their labels.
        send("off", series("a", now, 1.0), series("b", now, 2.0))
        kept = [dict(labels)["__replica__"] for of, labels, _ in log_of(node).samples if of == "off"]
        self.assertEqual(sorted(kept), ["a", "b"])

    def test_a_repetition_is_one_record(self):
        node, now = self.start("--ha-pairs", "--ha-replica-label", "who", "--ha-cluster-label", "team"), now_ms()
        body = version_1([Series({"__name__": "m", "who": w, "team": "x", "i": w}, [(now, 1.0)])
                          for w in ("a", "b")] + [Series({"__name__": "n"}, [(now, 1.0)])])
        for _ in range(3):
            self.assertEqual(write(node, body)[0], 204)
        log = log_of(node)
        self.assertEqual((log.sample_records, len(log.samples)), (2, 2))

    def test_too_many_replicas_in_one_request_are_413(self):
        node, now = self.start("--ha-pairs"), now_ms()
        body = version_1([s for i in range(33) for s in series(f"r{i}", now)])
        status, why, _ = write(node, body)
        self.assertEqual((status, why), (413, b"a request has samples of more than 32 replicas: split it\n"))


class PairsOfCluster(ClusterTest):
    def test_a_killed_replica_and_killed_nodes(self):
        """Two replicas send to three nodes of four partitions; the elected one dies, and so do nodes."""
        nodes = self.cluster(args=["--partitions", "4", "--ha-pairs"])
        for p in range(4):
            wait_for("all voters", lambda: all(
                len(self.voters(node, f"metrics-{p}")) == 3 for node in nodes))
        now, alive = now_ms() - 300000, list(nodes)

        def send(i, replica, value):
            body = version_1(series(replica, now + 5000 * i + value, float(value), count=8))

            def taken():  # as senders do: the same until it is taken
                try:
                    return write(alive[i % len(alive)], body, timeout=15)[0] == 204
                except OSError:
                    return False
            wait_for("an answer", taken, 30)

        for i in range(30):
            if i == 10:  # any node: maybe the one that leads elections
                nodes[0].kill()
                alive.remove(nodes[0])
            if i < 15:
                send(i, "a", 1)
            send(i, "b", 2)
            if i == 20:
                nodes[0].start()
                alive.append(nodes[0])
                nodes[1].kill()
                alive.remove(nodes[1])
        found = written([log_of(alive[0], p) for p in range(4)])
        # Never both of one time, all eight series of each: one replica for all partitions.
        firsts = [ts for ts, values in found.items() if values == {1.0}]
        seconds = [ts for ts, values in found.items() if values == {2.0}]
        self.assertEqual(len(firsts) + len(seconds), len(found))
        self.assertEqual(sorted(firsts), [now + 5000 * i + 1 for i in range(15)])
        # 30 s behind the last of a, 10 s more if its leader changed.
        self.assertIn(min(seconds), [now + 5000 * i + 2 for i in (20, 21, 22, 23)])
        self.assertEqual(sorted(seconds), list(range(min(seconds), now + 5000 * 29 + 3, 5000)))
        for ts in found:
            self.assertEqual(sum(1 for p in range(4) for key in log_of(alive[0], p).samples
                                 if key[2] == ts), 8)


if __name__ == "__main__":
    unittest.main()
