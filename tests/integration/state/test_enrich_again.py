"""test_enrich_again.py - requests that are sent again after a map or a rule changed are enriched as they were the first time."""
import unittest

from enriching import EnrichTest
from messages import Series, now_ms, version_1, write
from states import wait_for


class Again(EnrichTest):
    """Requests that are sent again. Each has one series, and its label says in which partition it is: where a series goes to another one
    than the first time, that partition does not know the request."""

    PARTITIONS = 4

    def bodies(self, now, count=20):
        return [version_1([Series({"__name__": "m", "service": f"s{i}"}, [(now, 1.0)])]) for i in range(count)]

    def teams_are(self, node, what):
        return self.load(node, *[{"map": "team", "key": f"s{i}", "value": f"{what}{i}"} for i in range(20)])["position"]

    def begin(self, node):
        self.define(node, "team")
        self.teams_are(node, "one")
        self.put_rule(node, "team", map="team", **{"from": "service"}, to="team")

    def send(self, node, bodies):
        for body in bodies:
            wait_for("a write", lambda: self.try_write(node, body), 60)

    def try_write(self, node, body):
        status, why, _ = write(node, body)
        self.assertIn(status, (204, 503), why)
        return status == 204

    def teams(self, written):
        return {dict(labels)["team"][:3] for labels in written}

    def test_are_enriched_as_they_were(self):
        node, now = self.node(args=["--partitions", str(self.PARTITIONS)]).start("--bootstrap"), now_ms()
        self.begin(node)
        bodies = self.bodies(now)
        self.send(node, bodies)
        first = self.written(node, self.PARTITIONS)
        self.assertEqual((self.teams(first), len(first)), ({"one"}, len(bodies)))
        for what in ("two", "three"):
            self.teams_are(node, what)
            self.send(node, bodies)
            self.assertEqual(self.written(node, self.PARTITIONS), first)
        # The rule changes, and goes; the node dies.
        self.put_rule(node, "team", map="team", **{"from": "service"}, to="other")
        self.send(node, bodies)
        node.kill()
        node.start()
        self.send(node, bodies)
        self.assertEqual(node.request("DELETE", "/api/v1/state/rules/team")[0], 204)
        self.teams_are(node, "four")
        self.send(node, bodies)
        self.assertEqual(self.written(node, self.PARTITIONS), first)
        # A key of another body is another request's; what is new is enriched as it is now.
        keyed = {"Idempotency-Key": "k"}
        self.put_rule(node, "team", map="team", **{"from": "service"}, to="team")
        self.assertEqual(write(node, self.bodies(now + 1)[0], headers=keyed)[0], 204)
        self.assertEqual(write(node, self.bodies(now + 2)[0], headers=keyed)[0], 422)
        later = {labels: times for labels, times in self.written(node, self.PARTITIONS).items() if labels not in first}
        self.assertEqual(later, {(("service", "s0"), ("team", "four0")): {now + 1}})

    def test_at_any_node(self):
        nodes, now = self.cluster(args=["--partitions", str(self.PARTITIONS)]), now_ms()
        self.begin(nodes[0])
        self.wait_rules(nodes, ["team"])
        bodies = self.bodies(now)
        self.send(nodes[0], bodies)
        first = self.written(nodes[0], self.PARTITIONS)
        self.wait_rows(nodes, "team", self.teams_are(nodes[0], "two"))
        nodes[0].kill()
        for node in nodes[1:]:
            self.send(node, bodies)
        nodes[0].start()
        self.send(nodes[0], bodies)
        self.assertEqual(self.written(nodes[1], self.PARTITIONS), first)
        self.assertEqual((self.teams(first), len(first)), ({"one"}, len(bodies)))


if __name__ == "__main__":
    unittest.main()
