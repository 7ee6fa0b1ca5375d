"""states.py - state maps of real ingest nodes, for the tests in this folder."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ingest"))
from clusters import ClusterTest  # noqa: E402
from harness import wait_for  # noqa: E402


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


class StateTest(ClusterTest):
    def define(self, node, name, kind="state", version=None, tenant=None, expect=200, **more):
        params = {} if version is None else {"version": version}
        status, answer = node.request("PUT", f"/api/v1/state/maps/{name}", params,
                                      json.dumps({"kind": kind, **more}), self.as_tenant(tenant))
        self.assertEqual(status, expect, answer)
        return answer["data"] if status == 200 else answer

    def as_tenant(self, tenant):
        return {"X-Scope-OrgID": tenant} if tenant else {}

    def load(self, node, *rows, tenant=None, expect=200, **params):
        """Rows as JSON lines."""
        return self.load_text(node, lines(*rows), "jsonl", tenant, expect, **params)

    def load_text(self, node, text, form, tenant=None, expect=200, **params):
        status, answer = node.request("POST", "/api/v1/state/load", {"format": form, **params}, text,
                                      {"Content-Type": "application/octet-stream", **self.as_tenant(tenant)}, timeout=60)
        self.assertEqual(status, expect, answer)
        return answer["data"] if status == 200 else answer

    def maps(self, node, tenant=None):
        status, answer = node.request("GET", "/api/v1/state/maps", headers=self.as_tenant(tenant))
        self.assertEqual(status, 200, answer)
        return {one["name"]: one for one in answer["data"]["maps"]}

    def wait_rows(self, nodes, name, position):
        """All nodes have merged it."""
        for node in nodes:
            wait_for(f"{node.name} to have {name} of {position}",
                     lambda node=node: self.maps(node).get(name, {}).get("rows", 0) >= position)

    def snapshot(self, node, name, tenant=None, headers=None, **params):
        return node.raw("GET", f"/api/v1/state/maps/{name}/snapshot", params,
                        headers={**self.as_tenant(tenant), **(headers or {})})
