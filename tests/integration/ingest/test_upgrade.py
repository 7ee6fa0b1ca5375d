"""test_upgrade.py - two releases in one cluster: nodes whose streams have a newer version beside those of now,
both ways, while senders write."""
import os
import shutil
import subprocess
import unittest

from clusters import ClusterTest
from harness import BINARY, wait_for
from sending import Senders

NEXT = os.environ["PROMFABRIC_NEXT"]
PARTITIONS = 2


class Upgrade(ClusterTest):
    def setUp(self):
        super().setUp()
        self.nodes = self.cluster(args=["--partitions", str(PARTITIONS)])
        for queue in self.queues():
            wait_for("all voters", lambda queue=queue: all(len(self.voters(node, queue)) == 3 for node in self.nodes))

    def queues(self):
        return ["meta", *[f"metrics-{p}" for p in range(PARTITIONS)]]

    def spoken(self, node):
        """The version spoken with each other node, once all are connected."""
        def connected():
            peers = {p["name"]: p for p in node.request("GET", "/v1/peers")[1]["peers"]}
            return len(peers) == 2 and all(p["state"] == "connected" for p in peers.values()) and peers
        return {name: peer["protocol"] for name, peer in wait_for("peers", connected, 30).items()}

    def check_versions(self):
        for node in self.nodes:
            for other in self.nodes:
                if other is not node:
                    both = {node.binary, other.binary}
                    wait_for(f"{node.name} to speak with {other.name}", lambda node=node, other=other, both=both:
                             self.spoken(node)[other.name] == (2 if both == {NEXT} else 1), 30)

    def roll(self, binary):
        """One node after another, as an update of the pods does it."""
        for node in reversed(self.nodes):
            self.assertEqual(node.stop(60), 0)
            node.binary = binary
            node.start()
            for queue in self.queues():
                wait_for(f"{node.name} to vote in {queue}", lambda queue=queue, node=node: node.name in self.voters(node, queue))
            self.check_versions()

    def test_up_and_back_again_under_load_loses_and_fails_nothing(self):
        senders = Senders(self.nodes)
        self.addCleanup(senders.stop)
        for binary in (NEXT, BINARY):
            before = senders.count()
            self.roll(binary)
            wait_for("writes to go on", lambda before=before: senders.count() > before + 50)
        senders.stop()
        for node in self.nodes:
            senders.check(self, node, PARTITIONS)
        print(f"{senders.count()} requests, {senders.retries} sent again")

    def test_a_leader_of_either_release_dies_and_the_other_one_takes_over(self):
        self.nodes[0].stop()
        self.nodes[0].binary = NEXT
        self.nodes[0].start()
        self.check_versions()
        senders = Senders(self.nodes)
        self.addCleanup(senders.stop)
        for leads in (NEXT, BINARY):
            wanted = next(node for node in self.nodes if node.binary == leads)
            wait_for(f"{wanted.name} to lead", lambda wanted=wanted: self.hand_over(wanted), 30)
            wanted.kill()
            before = senders.count()
            wait_for("writes to go on", lambda before=before: senders.count() > before + 50, 30)
            wanted.start()
            self.check_versions()
        senders.stop()
        for node in self.nodes:
            senders.check(self, node, PARTITIONS)

    def hand_over(self, node):
        if self.leader(self.nodes, "metrics-0") is node:
            return True
        node.request("POST", "/v1/queues/metrics-0/transfer", {"to": node.name})
        return False

    def test_a_node_that_lost_its_folder_comes_back_as_the_next_release(self):
        """It gets log and state from nodes of the older one: as snapshots, or entry by entry."""
        senders = Senders(self.nodes)
        wait_for("some writes", lambda: senders.count() > 50)
        senders.stop()
        lost = self.nodes[2]
        lost.kill()
        shutil.rmtree(lost.data)
        lost.binary = NEXT
        lost.start(ready=False)
        done = subprocess.run([NEXT, "queue", "form", *[f"http://127.0.0.1:{n.port}" for n in self.nodes], "--replace",
                               lost.name, "--wait=60s"], capture_output=True, text=True, timeout=90)
        self.assertEqual((done.returncode, done.stdout), (0, "3 nodes vote\n"), done.stderr)
        wait_for("it to be ready", lost.is_ready)
        self.check_versions()
        self.nodes[0].kill()
        for queue in self.queues():
            self.wait_leader(self.nodes[1:], queue)
        senders.check(self, lost, PARTITIONS)


if __name__ == "__main__":
    unittest.main()
