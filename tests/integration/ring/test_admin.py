"""test_admin.py - storage nodes in meta: added, founded, removed, followed, kept, whichever ingest node is asked."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import time
import unittest

from clusters import ClusterTest
from harness import BINARY, NodeTest, wait_for

NODES = "/v1/admin/storage-nodes"


def add(node, name, **params):
    return node.request("POST", NODES, {"name": name, "url": f"http://{name}:8082", **params})


def ring_of(node):
    status, answer = node.request("GET", NODES)
    if status != 200:
        raise AssertionError((status, answer))
    return answer


def found(node, names="abc", copies=3):
    for name in names:
        status, answer = add(node, name)
        if status != 200:
            raise AssertionError((status, answer))
    return node.request("POST", "/v1/admin/ring", {"copies": copies})


def ring_bytes(node, **params):
    status, body, headers = node.raw("GET", "/v1/ring", params, timeout=70)
    if (status, headers["Content-Type"]) != (200, "application/octet-stream"):
        raise AssertionError((status, body))
    return body


class Alone(NodeTest):
    def setUp(self):
        super().setUp()
        self.a = self.node().start("--bootstrap")

    def test_a_ring_is_founded_of_the_nodes_that_were_added(self):
        self.assertEqual(ring_of(self.a)["nodes"], [])
        status, answer = self.a.request("POST", "/v1/admin/ring", {"copies": 3})
        self.assertEqual((status, answer["error"], answer["message"]),
                         (409, "conflict", "there would be fewer nodes than copies"))
        status, answer = found(self.a)
        self.assertEqual((status, answer["status"], answer["changed"], answer["epoch"]), (200, "ok", True, 1))
        ring = ring_of(self.a)
        self.assertEqual([(n["name"], n["state"], n["url"], n["slots"]) for n in ring["nodes"]],
                         [(name, "NORMAL", f"http://{name}:8082", 1024) for name in "abc"])
        self.assertEqual((ring["ring"]["founded"], ring["ring"]["copies"], ring["ring"]["grace_ms"]),
                         (True, 3, 24 * 3600 * 1000))
        self.assertEqual(self.a.request("POST", "/v1/admin/ring")[0], 409)
        self.assertEqual(self.a.request("GET", NODES + "/b")[1]["name"], "b")
        self.assertEqual(self.a.request("GET", NODES + "/nobody")[0], 404)
        self.assertEqual(self.a.request("GET", NODES + "/" + "b" * 64)[0], 404)

    def test_a_change_of_nodes_is_a_migration_that_can_be_canceled(self):
        found(self.a)
        self.assertEqual(self.a.request("DELETE", NODES + "/a")[0], 409)  # three copies on two nodes
        status, answer = add(self.a, "d", zone="east")
        self.assertEqual(status, 200, answer)
        path = f"/v1/admin/migrations/{answer['migration']}"
        migration = self.a.request("GET", path)[1]
        self.assertEqual((migration["type"], migration["status"], migration["node"]), ("node_addition", "running", "d"))
        self.assertEqual(migration["progress"]["slots"], 1024)
        self.assertEqual([m["id"] for m in self.a.request("GET", "/v1/admin/migrations")[1]["migrations"]],
                         [migration["id"]])
        status, answer = self.a.request("DELETE", NODES + "/d")
        self.assertEqual((status, answer["message"]), (409, "another change of it is running"))
        self.assertEqual(self.a.request("DELETE", path, {"reason": "too soon"})[0], 200)
        migration = self.a.request("GET", path)[1]
        self.assertIn(migration["status"], ("rolling_back", "rolled_back"))
        self.assertEqual(migration["reason"], "too soon")
        self.assertEqual(self.a.request("DELETE", path)[1]["changed"], False)
        for wrong in ("77777", "x"):
            self.assertEqual(self.a.request("GET", f"/v1/admin/migrations/{wrong}")[0], 404)
            self.assertEqual(self.a.request("DELETE", f"/v1/admin/migrations/{wrong}")[0], 404)

    def test_values_that_cannot_be_are_refused_and_cost_nothing(self):
        for params in ({}, {"name": "a"}, {"name": "a b", "url": "http://a"}, {"name": "-a", "url": "http://a"},
                       {"name": "a" * 64, "url": "http://a"}, {"name": "a", "url": "ftp://a"}, {"name": "a", "url": "http://"},
                       {"name": "a", "url": "http://" + "a" * 200}, {"name": "a", "url": "http://a\n"},
                       {"name": "a", "url": "http://a", "zone": "z" * 64}):
            status, answer = self.a.request("POST", NODES, params)
            self.assertEqual((status, answer["error"]), (400, "bad_data"), params)
        for params in ({"copies": 0}, {"copies": 8}, {"copies": "x"}, {"grace": "soon"}):
            self.assertEqual(self.a.request("POST", "/v1/admin/ring", params)[0], 400, params)
        found(self.a)
        for params in ({}, {"slot": 1024}, {"slot": 5, "reason": "r" * 121}, {"slot": 5, "force": "true"}):
            self.assertEqual(self.a.request("POST", NODES + "/a/clean", params)[0], 400, params)
        self.assertEqual(self.a.request("POST", NODES + "/a/clean", {"slot": 5})[0], 409)  # an owner
        self.assertEqual(self.a.request("PUT", "/v1/admin/ring", {"copies": 4})[0], 409)
        self.assertEqual(self.a.request("GET", "/v1/ring", {"from": "x"})[0], 400)
        self.assertEqual(ring_of(self.a)["ring"]["epoch"], 1)

    def test_nobody_else_writes_records_into_meta(self):
        self.assertEqual(self.a.offer("meta", b'{"ring":"AA=="}')[0], 400)

    def test_who_follows_the_ring_hears_of_a_later_epoch_at_once(self):
        empty = ring_bytes(self.a)
        self.assertEqual(ring_bytes(self.a, **{"from": 0, "wait": "100ms"}), empty)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            waiting = pool.submit(ring_bytes, self.a, **{"from": 0, "wait": "50s"})
            time.sleep(0.3)
            self.assertFalse(waiting.done())
            began = time.monotonic()
            found(self.a)
            body = waiting.result(10)
            self.assertLess(time.monotonic() - began, 10)
        self.assertIn(b"http://b:8082", body)
        self.assertIn(b"http://b:8082", ring_bytes(self.a))
        # Nobody who waits holds up the end of the process.
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            waiting = pool.submit(ring_bytes, self.a, **{"from": 1, "wait": "50s"})
            time.sleep(0.3)
            self.assertEqual(self.a.stop(), 0)
            self.assertIn(b"http://b:8082", waiting.result(10))

    def test_the_ring_outlives_restarts_and_the_trimming_of_meta(self):
        found(self.a)
        # Nobody answers at these URLs, which the leader notes; from then on nothing changes.
        wait_for("all to be down", lambda: all(n["down"] for n in ring_of(self.a)["nodes"]), 60)
        body = ring_bytes(self.a)
        self.a.kill()
        self.a.start()
        self.assertEqual(ring_bytes(self.a), body)
        for _ in range(520):  # meta is compacted after a thousand records
            self.a.request("PUT", "/v1/queues/q")
            self.a.request("DELETE", "/v1/queues/q")
        wait_for("meta to be trimmed", lambda: self.a.request("GET", "/v1/queues/meta/status")[1]["first"] > 9)
        self.assertEqual(ring_bytes(self.a), body)
        for end in (self.a.kill, self.a.stop):
            end()
            self.a.start()
            self.assertEqual(ring_bytes(self.a), body)
        status, answer = add(self.a, "a")
        self.assertEqual((status, answer["error"]), (409, "exists"))

    def test_a_snapshot_with_a_ring_has_a_version_that_older_releases_refuse(self):
        path = self.a.data / "meta" / "snapshot.dat"
        self.assertEqual(path.read_bytes()[8], 1)
        found(self.a)
        self.assertEqual(self.a.request("PUT", "/v1/queues/q")[0], 200)  # a queue more is a snapshot
        wait_for("a snapshot", lambda: path.read_bytes()[8] == 3)


class Keys(NodeTest):
    def test_storage_nodes_are_the_operators_business(self):
        keys = self.folder + "/keys"
        with open(keys, "w") as file:
            file.write("operator * ops\none t1\n")
        os.chmod(keys, 0o600)
        node = self.node(args=["--api-keys", keys]).start("--bootstrap")
        for method, path in (("GET", NODES), ("POST", NODES + "?name=a&url=http://a"), ("GET", NODES + "/a"),
                             ("DELETE", NODES + "/a"), ("POST", NODES + "/a/clean?slot=1"), ("GET", "/v1/ring"),
                             ("POST", "/v1/admin/ring"), ("PUT", "/v1/admin/ring?copies=3"),
                             ("GET", "/v1/admin/migrations"), ("GET", "/v1/admin/migrations/1"),
                             ("DELETE", "/v1/admin/migrations/1")):
            self.assertEqual(node.request(method, path, None, None, {"Authorization": "Bearer one"})[0], 403, path)
            self.assertEqual(node.request(method, path)[0], 401, path)
        headers = {"Authorization": "Bearer operator"}
        self.assertEqual(node.request("GET", NODES, None, None, headers)[0], 200)
        self.assertEqual(node.request("GET", "/v1/ring", None, None, headers)[0], 200)


class Commands(NodeTest):
    def setUp(self):
        super().setUp()
        self.a = self.node().start("--bootstrap")

    def run_nodes(self, *args, code=0):
        run = subprocess.run([BINARY, "nodes", *args, "--url", f"http://127.0.0.1:{self.a.port}"], capture_output=True,
                             text=True, timeout=60)
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stdout if code == 0 else run.stderr

    def test_nodes_from_a_terminal(self):
        self.assertIn("no ring yet", self.run_nodes("ls"))
        for name in "abc":
            self.assertEqual(self.run_nodes("add", name, f"http://{name}:1"), "added\n")
        self.assertEqual(self.run_nodes("found", "--copies", "2", "--grace", "1h"), "founded\n")
        self.assertEqual(self.run_nodes("status"), "nothing moves\n")
        text = self.run_nodes("remove", "b")
        self.assertRegex(text, r"^it is leaving: migration \d+\n$")
        migration = text.split()[-1]
        self.assertRegex(self.run_nodes("status"), rf"^{migration} +node_deletion +running +b +\d+\.\d%")
        self.assertRegex(self.run_nodes("ls"), r"b +LEAVING +- +\d+ +\d+  http://b:1\n")
        self.assertEqual(self.run_nodes("cancel", migration, "--reason", "no"), "going back\n")
        self.assertIn("the last: no", self.run_nodes("status", migration))
        self.assertRegex(self.run_nodes("copies", "--copies", "3"), r"^changing: migration \d+\n$")
        self.assertTrue(re.search(r'"type":"copies"', self.run_nodes("status", "--json")))

    def test_a_ring_is_formed_once_and_grows(self):
        def form(*nodes, code=0):
            return self.run_nodes("form", *nodes, "--copies", "2", "--wait", "20s" if code == 0 else "0s", code=code)
        three = [f"{name}=http://{name}:1" for name in "abc"]
        self.assertEqual(form(*three), "3 storage nodes are on the ring\n")
        before = ring_of(self.a)
        self.assertEqual((before["ring"]["founded"], before["ring"]["copies"]), (True, 2))
        self.assertEqual(form(*three), "3 storage nodes are on the ring\n")
        self.assertEqual(ring_of(self.a)["ring"], before["ring"])  # nothing changed
        self.assertEqual(form(*three[:2]), "2 storage nodes are on the ring\n")  # nobody is removed
        self.assertEqual(form(*three, "d=http://d:1"), "4 storage nodes are on the ring\n")
        self.assertRegex(self.run_nodes("status"), "node_addition +running +d ")
        self.assertIn("a is known at http://a:1, not at http://b:1", form("a=http://b:1", code=1))
        self.run_nodes("remove", "b")
        self.assertIn("b is LEAVING", form(*three, code=1))
        self.assertIn("x is not NAME=URL", form("x", code=2))

    def test_errors_are_one_line_and_an_exit_code(self):
        for args, want in ((["remove", "x"], "there is no such node"), (["status", "9"], "no such migration"),
                           (["add", "x", "y"], "storage node are needed"), (["found"], "fewer nodes than copies")):
            error = self.run_nodes(*args, code=1)
            self.assertIn(want, error)
            self.assertEqual(len(error.splitlines()), 1, error)
        for args in ([], ["nonsense"], ["add", "x"], ["ls", "x"], ["remove"]):
            run = subprocess.run([BINARY, "nodes", *args], capture_output=True, text=True)
            self.assertEqual((run.returncode, len(run.stderr.splitlines())), (2, 1), run.stderr)


class Three(ClusterTest):
    def test_any_node_is_asked_and_all_follow(self):
        nodes = self.cluster()
        self.assertEqual(found(nodes[1])[0], 200)
        body = wait_for("all to have the same ring",
                        lambda: len({ring_bytes(n) for n in nodes}) == 1 and ring_bytes(nodes[0]))
        self.assertEqual(len({str(ring_of(n)["nodes"]) for n in nodes}), 1)
        leader = self.leader(nodes, "meta")
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            waiting = [pool.submit(ring_bytes, n, **{"from": 1, "wait": "10s"}) for n in nodes if n is not leader]
            leader.kill()
            rest = [n for n in nodes if n is not leader]
            wait_for("another leader", lambda: add(rest[0], "d")[0] == 200)
            self.assertEqual([w.result(20)[:1] for w in waiting], [body[:1]] * 2)
        leader.start()
        wait_for("all to have the same ring", lambda: len({ring_bytes(n) for n in nodes}) == 1)
        self.assertIn(b"http://d:8082", ring_bytes(leader))

    def test_a_new_node_gets_the_ring_with_the_snapshot(self):
        nodes = self.cluster()
        self.assertEqual(found(nodes[0])[0], 200)
        for _ in range(520):
            nodes[0].request("PUT", "/v1/queues/q")
            nodes[0].request("DELETE", "/v1/queues/q")
        leader = self.leader(nodes, "meta")
        wait_for("meta to be trimmed", lambda: leader.request("GET", "/v1/queues/meta/status")[1]["first"] > 9)
        wiped = next(n for n in nodes if n is not leader)
        wiped.kill()
        shutil.rmtree(wiped.data)
        wait_for("it to be removed", lambda: self.change(leader, "remove", wiped.name))
        wiped.start(ready=False)
        wait_for("it to be added", lambda: self.change(leader, "add", wiped.name))
        wait_for("it to have the ring", lambda: wiped.raw("GET", "/v1/ring")[1] == ring_bytes(leader), 60)


if __name__ == "__main__":
    unittest.main()
