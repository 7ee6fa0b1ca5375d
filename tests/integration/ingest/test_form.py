"""test_form.py - `promfabric queue form`: one cluster out of nodes that only know where the others are."""
import os
import shutil
import subprocess
import threading
import unittest

from clusters import ClusterTest
from harness import BINARY, wait_for


class Form(ClusterTest):
    def nodes(self, count=3):
        nodes = [self.node(name, ["--election-timeout", "500ms"]) for name in "abcde"[:count]]
        for node in nodes:  # all of them, itself too: as a set of equal pods would have it
            node.args += [f"--peer={other.name}=127.0.0.1:{other.peer_port}" for other in nodes]
        return nodes

    def form(self, nodes, *flags, wait="40s"):
        done = subprocess.run([BINARY, "queue", "form", *[f"http://127.0.0.1:{n.port}" for n in nodes], f"--wait={wait}",
                               *flags], capture_output=True, text=True, timeout=90)
        return done.returncode, done.stdout, done.stderr

    def voting(self, nodes):
        for queue in ("meta", "metrics-0"):
            self.assertEqual({tuple(sorted(self.voters(n, queue))) for n in nodes}, {tuple(n.name for n in nodes)})

    def test_three_empty_nodes_become_one_cluster_and_stay_it(self):
        nodes = [node.start(ready=False) for node in self.nodes()]
        code, out, err = self.form(nodes)
        self.assertEqual((code, out), (0, "3 nodes vote\n"), err)
        self.assertEqual([sorted(self.voters(nodes[0], queue)) for queue in ("meta", "metrics-0")], [["a", "b", "c"]] * 2)
        for node in nodes:
            wait_for("ready", node.is_ready)
        self.voting(nodes)
        cluster = nodes[0].request("GET", "/v1/node")[1]["cluster"]
        self.assertEqual(self.form(nodes), (0, "3 nodes vote\n", ""))  # nothing was changed
        self.assertEqual({n.request("GET", "/v1/node")[1]["cluster"] for n in nodes}, {cluster})
        for node in nodes:  # as after a rolling restart, none with --bootstrap
            self.assertEqual(node.stop(), 0)
            node.start()
        self.voting(nodes)

    def test_nodes_that_come_late_are_waited_for(self):
        nodes = self.nodes()
        late = threading.Timer(2, lambda: [node.start(ready=False) for node in nodes])
        late.start()
        self.addCleanup(late.join)
        self.assertEqual(self.form(nodes)[:2], (0, "3 nodes vote\n"))

    def test_without_all_of_them_no_cluster_is_made(self):
        """One that is away may be in a cluster, which must not get a second one beside it."""
        nodes = self.nodes()
        nodes[0].start(ready=False)
        wait_for("a", lambda: self.answers(nodes[0]))
        code, out, err = self.form(nodes, wait="1s")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("not done in time: http://127.0.0.1:", err)
        self.assertEqual(int(nodes[0].request("GET", "/v1/node")[1]["cluster"], 16), 0)

    def answers(self, node):
        try:
            return node.request("GET", "/livez")[0] == 200
        except OSError:
            return False

    def test_a_lost_folder_is_replaced_only_on_demand(self):
        nodes = [node.start(ready=False) for node in self.nodes()]
        self.assertEqual(self.form(nodes)[0], 0)
        self.assertEqual(nodes[0].request("PUT", "/v1/queues/q")[0], 200)
        self.assertEqual(self.form(nodes)[0], 0)  # they all vote in q
        self.assertEqual(nodes[0].offer("q", b"kept")[0], 200)
        old = self.incarnation(nodes[0], "a")
        nodes[0].kill()
        shutil.rmtree(nodes[0].data)
        nodes[0].start(ready=False)
        code, _, err = self.form(nodes, wait="10s")
        self.assertEqual(code, 1)
        self.assertIn("a is a member, but the node at ", err)
        self.assertIn("--replace a", err)
        self.assertEqual(self.incarnation(nodes[1], "a"), old)
        code, out, err = self.form(nodes, "--replace", "a")
        self.assertEqual((code, out), (0, "3 nodes vote\n"), err)
        wait_for("ready", nodes[0].is_ready)
        self.assertNotEqual(self.incarnation(nodes[1], "a"), old)
        self.assertEqual([data for _, data in nodes[0].read_all("q")], [b"kept"])

    def incarnation(self, at, name):
        return [m["incarnation"] for m in self.known(at, "meta")["members"] if m["name"] == name]

    def test_two_clusters_are_named_and_left_alone(self):
        nodes = self.nodes(2)
        for node in nodes:
            node.start("--bootstrap")
        code, _, err = self.form(nodes, wait="5s")
        self.assertEqual(code, 1)
        self.assertIn("a and b are in different clusters", err)

    def test_a_cluster_is_made_once_and_by_operators(self):
        keys = f"{self.folder}/keys"
        with open(keys, "w") as file:
            file.write("boss-key * boss\nteam-key team team\n")
        os.chmod(keys, 0o600)
        node = self.node("a", [f"--api-keys={keys}"]).start(ready=False)
        wait_for("a", lambda: self.answers(node))

        def make(key):
            return node.request("POST", "/v1/cluster", headers={"Authorization": f"Bearer {key}"})
        self.assertEqual(make("team-key")[0], 403)
        self.assertEqual(make("boss-key")[0], 200)
        wait_for("ready", node.is_ready)
        status, answer = make("boss-key")
        self.assertEqual((status, answer["message"]), (409, "this node is in a cluster already"))


if __name__ == "__main__":
    unittest.main()
