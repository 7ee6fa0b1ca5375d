"""clusters.py - what tests do with several ingest nodes that are one cluster."""
from harness import NodeTest, wait_for


class ClusterTest(NodeTest):
    def cluster(self, count=3, args=()):
        """Nodes a, b, c of one cluster, all voters."""
        nodes = [self.node(name, ["--election-timeout", "500ms", *args]) for name in "abcde"[:count]]
        for node in nodes:
            node.args += [f"--peer={other.name}=127.0.0.1:{other.peer_port}"
                          for other in nodes if other is not node]
        nodes[0].start("--bootstrap")
        for node in nodes[1:]:
            node.start(ready=False)
            self.join(nodes[0], node)
        return nodes

    def join(self, at, node):
        for change in ("add", "promote"):
            wait_for(f"{node.name}: {change}", lambda: self.change(at, change, node.name))
        wait_for(f"{node.name} to be ready", node.is_ready)

    def change(self, at, change, name):
        status, answer = at.request("POST", "/v1/members", {"change": change, "name": name})
        if status != 200 and status not in (429, 503):
            raise AssertionError((change, name, status, answer))
        return status == 200

    def create(self, nodes, queue, **params):
        self.assertEqual(nodes[0].request("PUT", f"/v1/queues/{queue}", params)[0], 200)
        wait_for("all voters", lambda: all(
            len(self.voters(node, queue)) == len(nodes) for node in nodes))

    def voters(self, node, queue):
        status, answer = node.request("GET", f"/v1/queues/{queue}/status")
        return [m["name"] for m in answer["members"] if m["role"] == "voter"] if status == 200 else []

    def leader(self, nodes, queue):
        for node in nodes:
            try:
                status, answer = node.request("GET", f"/v1/queues/{queue}/status", timeout=3)
            except OSError:
                continue
            if status == 200 and answer["this_node"] == "leader":
                return node
        return None

    def wait_leader(self, nodes, queue):
        return wait_for("a leader", lambda: self.leader(nodes, queue))

    def known(self, node, queue):
        return node.request("GET", f"/v1/queues/{queue}/status")[1]
