"""test_cluster.py - three nodes: joining, forwarding, losing a leader, catching up by snapshot."""
import concurrent.futures
import os
import shutil
import threading
import time
import unittest

from clusters import ClusterTest
from harness import wait_for


class Cluster(ClusterTest):
    def test_leaders_do_not_follow_members_as_they_were(self):
        """Nodes that were killed know the members of meta as they were at its last snapshot, until meta has committed
        something again. Who leads another queue meanwhile must not undo what its members have become since."""
        nodes = self.cluster()
        self.create(nodes, "orders")
        wait_for("c to be demoted", lambda: self.change(nodes[0], "demote", "c"))
        wait_for("two voters", lambda: all(self.voters(n, "orders") == ["a", "b"] for n in nodes))
        # A queue more is a snapshot of meta.
        self.assertEqual(nodes[0].request("PUT", "/v1/queues/later")[0], 200)
        wait_for("snapshots", lambda: all((k := self.known(n, "meta"))["snapshot"] == k["applied"] for n in nodes))
        wait_for("c to be promoted", lambda: self.change(nodes[0], "promote", "c"))
        wait_for("three voters", lambda: all(len(self.voters(n, "orders")) == 3 for n in nodes))
        for node in nodes:
            node.kill()
        slow = {"LD_PRELOAD": os.environ["SLOW_SYNC"], "SLOW_SYNC_US": "30000000", "SLOW_SYNC_ONLY": "/meta/log-",
                "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
        for node in nodes:
            node.start(ready=False, env=slow)
        leader = wait_for("a leader", lambda: self.leader(nodes, "orders"), 60)
        self.assertEqual(leader.offer("orders", b"x")[0], 200)
        behind, end = self.known(leader, "meta"), time.monotonic() + 2.5
        self.assertLess(behind["applied"], behind["log_last"])  # or nothing is shown here
        while time.monotonic() < end:
            self.assertEqual(len(self.voters(leader, "orders")), 3)
        for node in nodes:
            node.kill()

    def test_offers_and_reads_at_any_node(self):
        nodes = self.cluster()
        self.create(nodes, "orders")
        for i in range(30):
            status, answer = nodes[i % 3].offer("orders", b"%d" % i, level=("quorum", "all", "one")[i % 3])
            self.assertEqual(status, 200, answer)
        for node in nodes:
            self.assertEqual([data for _, data in node.read_all("orders")],
                             [b"%d" % i for i in range(30)])
        self.assertGreater(sum(n.metric("promfabric_ingest_queue_forwarded_total") for n in nodes), 0)

    def test_a_poll_waits_at_any_node(self):
        nodes = self.cluster()
        self.create(nodes, "orders")
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            waiting = [pool.submit(node.request, "GET", "/v1/queues/orders", {"from": 1, "wait": "50s"})
                       for node in nodes]
            time.sleep(0.5)
            self.assertFalse(any(w.done() for w in waiting))
            self.assertEqual(nodes[0].offer("orders", b"x")[0], 200)
            for one in waiting:
                status, answer = one.result(20)
                self.assertEqual((status, len(answer["records"])), (200, 1))
        watches = [node.watch() for node in nodes]
        for watch in watches:
            self.assertEqual(next(watch)[0], "state")
        self.create(nodes, "more")
        for watch in watches:
            self.assertIn("more", str(next(e for e in watch if e[0] == "change")[2]))

    def test_a_killed_leader_loses_nothing_and_is_replaced(self):
        nodes = self.cluster()
        self.create(nodes, "orders")
        acknowledged, stop = {}, threading.Event()

        def offer(client):
            i = 0
            while not stop.is_set():
                for node in nodes:
                    try:
                        status, answer = node.offer("orders", b"%d/%d" % (client, i))
                    except OSError:
                        continue
                    if status == 200:
                        acknowledged[answer["first"]] = b"%d/%d" % (client, i)
                        break
                i += 1

        threads = [threading.Thread(target=offer, args=(c,)) for c in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            before = len(acknowledged)
            wait_for("offers", lambda: len(acknowledged) > before + 30)
            leader = self.wait_leader(nodes, "orders")
            leader.kill()
            before = len(acknowledged)
            wait_for("offers with another leader", lambda: len(acknowledged) > before + 30)
            leader.start()
        stop.set()
        for thread in threads:
            thread.join()
        for node in nodes:
            there = dict(node.read_all("orders"))
            self.assertEqual({o: there.get(o) for o in acknowledged}, acknowledged)

    def test_a_node_that_was_away_catches_up_by_snapshot(self):
        nodes = self.cluster(args=["--log-file-bytes", "1MiB"])
        self.create(nodes, "orders", retention_bytes=2 << 20)
        away = next(n for n in nodes if n is not self.wait_leader(nodes, "orders"))
        away.kill()
        others = [n for n in nodes if n is not away]
        for _ in range(60):
            wait_for("an offer", lambda: others[0].offer_lines("orders", [b"x" * 1000] * 200)[0] == 200)
        wait_for("the log to be cut", lambda: others[0].request(
            "GET", "/v1/queues/orders/status")[1]["log_first"] > 5000)
        away.start()
        want = others[0].read_all("orders")[-1]
        wait_for("what was missed", lambda: away.request(
            "GET", "/v1/queues/orders/status")[1]["applied"] >= want[0])
        self.assertGreaterEqual(away.metric("promfabric_ingest_queue_installs_total"), 1)
        for other in others:
            other.kill()
        away.kill()
        for node in nodes:
            node.start(ready=False)
        wait_for("everyone", lambda: all(n.is_ready() for n in nodes))
        self.assertEqual(away.read_all("orders")[-1], want)

    def test_a_node_that_catches_up_is_alive_and_not_ready(self):
        """Whoever restarts nodes one after another goes on when this one is ready; whoever asks whether it lives must
        not kill it for being behind."""
        nodes = self.cluster()
        self.create(nodes, "orders")
        away = next(n for n in nodes if n is not self.wait_leader(nodes, "orders"))
        away.kill()
        others = [n for n in nodes if n is not away]
        for _ in range(100):
            wait_for("an offer", lambda: others[0].offer_lines("orders", [b"x" * 1000] * 200)[0] == 200)
        want = self.known(self.wait_leader(others, "orders"), "orders")["applied"]
        away.start(ready=False, env={
            "LD_PRELOAD": os.environ["SLOW_SYNC"], "SLOW_SYNC_US": "400000",
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"})
        wait_for("it to answer", lambda: self.answers(away))
        behind = 0
        while not away.is_ready():
            self.assertEqual(away.request("GET", "/livez")[0], 200)
            status, known = away.request("GET", "/v1/queues/orders/status")
            behind += status == 200 and known["leader"] is not None and known["applied"] < want
            time.sleep(0.05)
        self.assertGreater(behind, 0)  # or nothing is shown here
        self.assertGreaterEqual(self.known(away, "orders")["applied"], want)
        wait_for("the metric", lambda: away.metric("promfabric_ingest_queues_behind") == 0)

    def answers(self, node):
        try:
            return node.request("GET", "/livez")[0] == 200
        except OSError:
            return False

    def test_a_drained_leader_hands_over_before_it_ends(self):
        nodes = self.cluster()
        self.create(nodes, "orders")
        leader = self.wait_leader(nodes, "orders")
        others = [n for n in nodes if n is not leader]
        self.assertEqual(leader.stop(), 0)
        # No election by silence is needed: another node leads the moment the process is gone.
        for queue in ("meta", "orders"):
            self.assertIsNotNone(self.leader(others, queue))
        self.assertEqual(others[0].offer("orders", b"x")[0], 200)

    def test_a_wiped_node_is_another_one(self):
        nodes = self.cluster()
        self.create(nodes, "orders")
        nodes[0].offer("orders", b"x")
        wiped = next(n for n in nodes if n is not self.wait_leader(nodes, "meta"))
        wiped.kill()
        shutil.rmtree(wiped.data)
        wiped.start(ready=False)
        at = next(n for n in nodes if n is not wiped)

        def refused():
            status, answer = at.request("POST", "/v1/members", {"change": "add", "name": wiped.name})
            return answer if status == 409 else None

        self.assertIn("remove the old member first", wait_for("a refusal", refused)["message"])
        wait_for("removal", lambda: self.change(at, "remove", wiped.name))
        self.join(at, wiped)
        wait_for("its record", lambda: wiped.read_all("orders")[-1][1] == b"x"
                 if self.voters(wiped, "orders") else None)
        wait_for("all voters", lambda: sorted(self.voters(wiped, "orders")) == ["a", "b", "c"])

    def test_without_a_majority_it_is_503_and_later_as_before(self):
        nodes = self.cluster()
        self.create(nodes, "orders")
        nodes[0].offer("orders", b"1")
        for node in nodes[1:]:
            node.kill()
        status, answer = wait_for("a refusal", lambda: self.refusal(nodes[0]))
        self.assertEqual(status, 503, answer)
        self.assertEqual(nodes[0].raw("GET", "/v1/queues/orders")[2]["Retry-After"], "1")
        for node in nodes[1:]:
            node.start(ready=False)
        wait_for("an offer", lambda: nodes[0].offer("orders", b"2")[0] == 200)

    def refusal(self, node):
        status, answer = node.offer("orders", b"lost?")
        return (status, answer) if status != 200 else None


if __name__ == "__main__":
    unittest.main()
