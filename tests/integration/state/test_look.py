"""test_look.py - what state maps say over HTTP: of a key, of many, row by row; at any node, also while one is away."""
import json
import unittest

from states import StateTest, wait_for

MORNING, NOON, EVENING = "2026-01-01T08:00:00Z", "2026-01-01T12:00:00Z", "2026-01-01T20:00:00Z"


class Look(StateTest):
    def get(self, node, name, key=None, expect=200, tenant=None, **params):
        params = {**params, **({"key": key} if key is not None else {})}
        status, answer = node.request("GET", f"/api/v1/state/{name}", params, headers=self.as_tenant(tenant))
        self.assertEqual(status, expect, answer)
        return answer["data"]["row"] if status == 200 else answer["message"]

    def many(self, node, name, body, expect=200):
        status, answer = node.request("POST", f"/api/v1/state/{name}", body=json.dumps(body),
                                      headers={"Content-Type": "application/json"})
        self.assertEqual(status, expect, answer)
        return answer["data"] if status == 200 else answer["message"]

    def rows(self, node, name, expect=200, **params):
        status, answer = node.request("GET", f"/api/v1/state/{name}/rows", params)
        self.assertEqual(status, expect, answer)
        return answer["data"] if status == 200 else answer["message"]

    def all_rows(self, node, name, **params):
        """Page by page."""
        found, pages = [], 0
        while True:
            page = self.rows(node, name, **params)
            found += page["rows"]
            pages += 1
            if "next" not in page:
                return found, pages
            params["after"] = page["next"]

    def fill(self, node):
        for name, kind in (("team", "state"), ("version", "temporal"), ("site", "ranged"), ("on_call", "session")):
            self.define(node, name, kind)
        return self.load(
            node, {"map": "team", "key": "checkout", "value": {"team": "payments"}},
            {"map": "team", "key": "basket \"x\"", "value": "shop"},
            {"map": "version", "key": "checkout", "time": MORNING, "value": 1},
            {"map": "version", "key": "checkout", "time": NOON, "value": 2},
            {"map": "version", "key": "basket", "time": NOON, "value": 7},
            {"map": "site", "from": 167772160, "to": 184549375, "value": "all"},
            {"map": "site", "from": 167772416, "to": 167772671, "value": "cardiff"},
            {"map": "on_call", "key": "alice", "start": MORNING, "end": EVENING})["position"]

    def test_keys_are_looked_up_at_a_moment(self):
        node = self.node().start("--bootstrap")
        self.fill(node)
        self.assertEqual(self.get(node, "TEAM", "checkout"),
                         {"map": "team", "key": "checkout", "type": "json", "value": {"team": "payments"}})
        self.assertEqual(self.get(node, "team", "basket \"x\"")["value"], "shop")
        self.assertEqual(self.get(node, "version", "checkout", time="2026-01-01T11:59:59.999Z")["value"], 1)
        self.assertEqual(self.get(node, "version", "checkout")["value"], 2)
        self.assertEqual(self.get(node, "site", "167772417")["value"], "cardiff")
        self.assertEqual(self.get(node, "on_call", "alice", time=NOON),
                         {"map": "on_call", "key": "alice", "start": MORNING, "end": EVENING})
        # What it does not say, and what cannot be asked.
        self.assertIn("says nothing of alice", self.get(node, "on_call", "alice", 404, time=EVENING))
        self.assertIn("says nothing of checkout", self.get(node, "version", "checkout", 404, time="2020-01-01T00:00:00Z"))
        self.assertIn("no integer", self.get(node, "site", "10.0.0.1", 400))
        self.assertIn("there is no map nowhere", self.get(node, "nowhere", "a", 404))
        self.assertIn("not the name", self.get(node, "a-b", "a", 400))
        self.assertIn("time", self.get(node, "team", "a", 400, time="12"))
        self.assertIn("key", self.get(node, "team", expect=400))
        self.assertIn("has no maps", self.get(node, "team", "checkout", 404, tenant="acme"))
        self.define(node, "empty")
        self.assertIn("says nothing of a", self.get(node, "empty", "a", 404))
        # A name that a path of the API has.
        self.assertIn("taken", self.define(node, "rules", expect=400)["message"])

    def test_many_keys_at_once(self):
        node = self.node().start("--bootstrap")
        position = self.fill(node)
        found = self.many(node, "version", {"keys": ["basket", "nobody", "checkout"], "time": "2026-01-01T11:00:00Z"})
        self.assertEqual((found["found"], found["version"]), (1, position))
        self.assertEqual([row and row["value"] for row in found["rows"]], [None, None, 1])
        found = self.many(node, "site", {"keys": [167772161, "167772417", -1]})
        self.assertEqual([row and row["value"] for row in found["rows"]], ["all", "cardiff", None])
        self.assertEqual(self.many(node, "team", {"keys": []})["rows"], [])
        for bad in ({}, {"keys": "a"}, {"keys": [1.5]}, {"keys": ["a"], "time": 5}, {"keys": ["a"], "what": 1}, [],
                    {"keys": ["a"] * 10001}):
            self.many(node, "team", bad, expect=400)
        self.assertEqual(node.request("POST", "/api/v1/state/team", body="{\"keys\":")[0], 400)
        self.many(node, "site", {"keys": ["x"]}, expect=400)
        self.many(node, "nowhere", {"keys": ["x"]}, expect=404)

    def test_rows_are_filtered_and_paged(self):
        node = self.node().start("--bootstrap")
        self.fill(node)
        self.assertEqual(len(self.rows(node, "team")["rows"]), 2)
        self.assertEqual([row["value"] for row in self.rows(node, "version", key="checkout")["rows"]], [1, 2])
        self.assertEqual(self.rows(node, "team", key="checkout")["rows"], [self.get(node, "team", "checkout")])
        self.assertEqual(self.rows(node, "team", key="nobody")["rows"], [])
        self.assertEqual([row["key"] for row in self.rows(node, "version", prefix="bas")["rows"]], ["basket"])
        self.assertEqual([row["value"] for row in self.rows(node, "version", key="checkout", since=NOON)["rows"]], [2])
        self.assertEqual([row["value"] for row in self.rows(node, "version", key="checkout", until=NOON)["rows"]], [1])
        self.assertEqual([row["value"] for row in self.rows(node, "site", number=167772417)["rows"]], ["cardiff", "all"])
        self.assertEqual(len(self.rows(node, "on_call", since=NOON, until=EVENING)["rows"]), 1)
        self.assertEqual(self.rows(node, "on_call", since=EVENING)["rows"], [])
        for name, bad in (("team", {"number": 1}), ("team", {"since": NOON}), ("site", {"key": "a"}), ("team", {"after": "xy"}),
                          ("team", {"after": "00" * 600}), ("team", {"limit": 0}), ("team", {"limit": 10001}),
                          ("version", {"until": "noon"}), ("site", {"number": "a"})):
            self.rows(node, name, expect=400, **bad)
        self.rows(node, "nowhere", expect=404)
        # In pages everything comes once.
        self.load(node, *[{"map": "version", "key": f"k{i % 50}", "time": f"2026-01-0{1 + i // 50}T00:00:00Z", "value": i}
                          for i in range(200)])
        found, pages = self.all_rows(node, "version", prefix="k", limit=33)
        self.assertEqual(sorted(row["value"] for row in found), list(range(200)))
        self.assertGreater(pages, 6)
        found, pages = self.all_rows(node, "version", key="k7", limit=1)
        self.assertEqual([row["value"] for row in found], [7, 57, 107, 157])

    def test_any_node_answers_while_one_is_away(self):
        nodes = self.cluster()
        self.fill(nodes[0])
        nodes[0].kill()
        position = wait_for("a load", lambda: self.try_load(nodes[1], {"map": "team", "key": "checkout", "value": "two"}), 60)
        self.wait_rows(nodes[1:], "team", position)
        for node in nodes[1:]:
            self.assertEqual(self.get(node, "team", "checkout")["value"], "two")
        nodes[0].start()
        self.wait_rows(nodes, "team", position)
        self.assertEqual(self.get(nodes[0], "team", "checkout")["value"], "two")

    def try_load(self, node, *rows):
        status, answer = node.request("POST", "/api/v1/state/load", {"format": "jsonl"},
                                      "".join(json.dumps(row) + "\n" for row in rows), timeout=60)
        return answer["data"]["position"] if status == 200 else None


if __name__ == "__main__":
    unittest.main()
