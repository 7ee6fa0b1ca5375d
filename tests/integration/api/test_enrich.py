"""test_enrich.py - labels that state maps gave to samples are in answers: fresh, sealed, and once, though senders send again after the map
changed."""
import json
import time
import unittest

from harness import wait_for
from test_ingest import Cluster, now_ms


class Enriched(unittest.TestCase):
    def ask(self, node, method, path, body, headers=None):
        status, answer = node.request(method, f"/api/v1/state/{path}", body, headers or {}, timeout=60)
        self.assertEqual(status, 200, answer)

    def load(self, node, team):
        rows = "".join(json.dumps({"map": "team", "key": f"s{i}", "value": f"{team}-{i % 2}"}) + "\n" for i in range(8))
        self.ask(node, "POST", "load?format=jsonl", rows, {"Content-Type": "application/octet-stream"})

    def test_labels_of_a_map_are_in_answers(self):
        cluster = Cluster(nodes=1, workers=1, flags=("--seal-age=1s", "--partitions=4"))
        self.addCleanup(cluster.close)
        node, now = cluster.nodes[0], now_ms()
        self.ask(node, "PUT", "maps/team", '{"kind":"state"}')
        self.load(node, "one")
        self.ask(node, "PUT", "rules/team", '{"map":"team","from":"service","to":"team"}')
        requests = [[f'm{{i="{i}",service="s{i}"}} {i} {now}'] for i in range(8)]
        for _ in range(2):
            for lines in requests:
                wait_for("a write", lambda: node.write(lines))
            self.load(node, "two")

        def check():
            self.assertEqual(cluster.values('m{team="one-1"}'), {"1": 1.0, "3": 3.0, "5": 5.0, "7": 7.0})
            self.assertEqual(cluster.values("sum by (i) (count by (i, team) (m))"), {str(i): 1.0 for i in range(8)})
            self.assertEqual(cluster.values('m{team=~"two.*"}'), {})

        check()
        wait_for("segments", cluster.segments, 30)
        time.sleep(1)
        check()


if __name__ == "__main__":
    unittest.main()
