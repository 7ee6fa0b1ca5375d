"""enriching.py - rules, and what is written of samples, for the tests of enrichment."""
import json

from states import StateTest, wait_for
from messages import log_of, write_series


class EnrichTest(StateTest):
    def put_rule(self, node, called, expect=200, version=None, tenant=None, **rule):
        status, answer = node.request("PUT", f"/api/v1/state/rules/{called}", {} if version is None else {"version": version},
                                      json.dumps(rule), self.as_tenant(tenant))
        self.assertEqual(status, expect, answer)
        return answer["data"] if status == 200 else answer["message"]

    def rules(self, node):
        status, answer = node.request("GET", "/api/v1/state/rules")
        self.assertEqual(status, 200, answer)
        return answer["data"]["rules"]

    def wait_rules(self, nodes, names):
        for node in nodes:
            wait_for(f"{node.name} to have rules", lambda node=node: [r["name"] for r in self.rules(node)] == names)

    def team_map(self, node, **more):
        """A map of teams, and its rule."""
        self.define(node, "team")
        position = self.load(node, {"map": "team", "key": "checkout", "value": "payments"},
                             {"map": "team", "key": "basket", "value": "shop"})["position"]
        self.put_rule(node, "team", **{"map": "team", "from": "service", "to": "team", **more})
        return position

    def write_all(self, node, *series, expect=204, **more):
        status, why, _ = write_series(node, *series, **more)
        self.assertEqual(status, expect, why)
        return why.decode()

    def written(self, node, partitions=1, name=None):
        """{labels: {time: ...}} of the logs, each sample there once; without the metric's name, of that alone if there is one."""
        found = {}
        for partition in range(partitions):
            log = log_of(node, partition)
            self.assertEqual(log.doubled, 0)
            for _, labels, ts in log.samples:
                if name is None or dict(labels)["__name__"] == name:
                    key = tuple((n, v) for n, v in labels if n != "__name__")
                    self.assertNotIn(ts, found.setdefault(key, set()))
                    found[key].add(ts)
        return found
