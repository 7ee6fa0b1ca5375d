"""test_tenants.py - settings of tenants in meta: agreed on whichever ingest node is asked, heeded by writing, reading and
documents, kept while nobody can be asked."""
import concurrent.futures
import json
import subprocess
import time
import unittest

from harness import BINARY, NodeTest, wait_for
from heads import write
from keepers import api
from test_documents import DocumentTest
from test_migrations import MigrationTest

TENANTS = "/v1/tenants"
JSON = {"Content-Type": "application/json"}
HOUR = 3600


def say(node, method, path, body):
    return node.request(method, path, body=json.dumps(body), headers=JSON)


class TenantTest(DocumentTest):
    def settled(self, name, **settings):
        """The tenant has these settings and no others, whatever it had."""
        def once():
            status, answer = self.nodes[0].request("GET", f"{TENANTS}/{name}")
            if status == 404:
                status, answer = say(self.nodes[0], "POST", TENANTS, {"tenant": name, **settings})
            elif status == 200:
                status, answer = say(self.nodes[0], "PUT", f"{TENANTS}/{name}", {"version": answer["version"], **settings})
            return status == 200 and answer
        return wait_for(f"settings of {name}", once, 60)

    def cli(self, *args, code=0):
        done = subprocess.run([BINARY, "tenants", *args, "--url", f"http://127.0.0.1:{self.nodes[1].port}"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr


class Together(TenantTest):
    """Three ingest nodes, three keepers and an API, which all of this happens to one after the other."""

    def test_settings_are_agreed_on_followed_and_kept(self):
        limits = self.folder + "/limits"
        with open(limits, "w", encoding="utf-8") as file:
            file.write("of-file series=1\n")
        self.fabric(nodes=3, copies=3, args=["--tenant-limits", limits])
        self.known()
        self.reader = api(self.folder, self.store, self.nodes[0], self.keepers.values(), "--tenant-settings-age", "12s",
                          *[f"--ingest=127.0.0.1:{n.port}" for n in self.nodes[1:]])
        self.processes.append(self.reader.start())
        self.any_node_decides_alike()
        self.what_cannot_be_is_said()
        self.writing_heeds_them()
        self.reading_heeds_them()
        self.copies_are_a_least()
        self.from_a_terminal()
        self.documents_have_the_level_of_their_tenant()
        self.they_outlive_everything_and_count_while_nobody_answers()

    def any_node_decides_alike(self):
        a, b, c = self.nodes
        made = self.settled("team", limits={"queries": 4, "retention": "90d", "memory": "512MiB"}, level="quorum")
        self.assertEqual(made["limits"], {"queries": 4, "memory": 512 << 20, "retention": "90d"})
        for node in self.nodes:
            self.assertEqual(node.request("GET", f"{TENANTS}/team"), (200, made))
        # The same again changes nothing; another one of the name is none; a stale version neither.
        settings = {"tenant": "team", "level": "quorum", "limits": made["limits"]}
        self.assertEqual(say(b, "POST", TENANTS, settings), (200, made))
        status, answer = say(b, "POST", TENANTS, {"tenant": "team"})
        self.assertEqual((status, answer["error"]), (409, "exists"))
        changed = {**made, "limits": {"queries": 5}}
        status, put = say(c, "PUT", f"{TENANTS}/team", changed)
        self.assertEqual((status, put["limits"]), (200, {"queries": 5}))
        self.assertGreater(put["version"], made["version"])
        status, answer = say(a, "PUT", f"{TENANTS}/team", {**changed, "limits": {"queries": 6}})
        self.assertEqual((status, answer["error"]), (409, "conflict"))
        self.assertIn("version", answer["message"])
        # Of many at once with one version one is done, whichever nodes they ask.
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda i: say(self.nodes[i % 3], "PUT", f"{TENANTS}/team",
                                                  {"version": put["version"], "limits": {"queries": 10 + i}}), range(6)))
        self.assertEqual(sorted(status for status, _ in answers), [200] + [409] * 5, answers)
        listed = a.request("GET", TENANTS)[1]["tenants"]
        self.assertEqual([t["tenant"] for t in listed], ["team"])
        self.assertIn(listed[0]["limits"]["queries"], range(10, 16))

    def what_cannot_be_is_said(self):
        node = self.nodes[2]
        for method, path, body, status, word in (
                ("POST", TENANTS, {"tenant": ".x"}, 400, "tenant"),
                ("POST", TENANTS, {}, 400, "tenant"),
                ("POST", TENANTS, {"tenant": "x", "version": 3}, 400, "version"),
                ("POST", TENANTS, {"tenant": "x", "colour": "red"}, 400, "colour"),
                ("POST", TENANTS, {"tenant": "x", "limits": {"whims": 1}}, 400, "whims"),
                ("POST", TENANTS, {"tenant": "x", "limits": {"queries": 0}}, 400, "queries"),
                ("POST", TENANTS, {"tenant": "x", "limits": {"retention": "long"}}, 400, "retention"),
                ("POST", TENANTS, {"tenant": "x", "limits": [1]}, 400, "limits"),
                ("POST", TENANTS, {"tenant": "x", "level": "most"}, 400, "level"),
                ("POST", TENANTS, {"tenant": "x", "replication_factor": 8}, 400, "replication_factor"),
                ("POST", TENANTS, [], 400, "object"),
                ("PUT", f"{TENANTS}/team", {"limits": {}}, 400, "version"),
                ("PUT", f"{TENANTS}/team", {"version": "1"}, 400, "version"),
                ("PUT", f"{TENANTS}/team", {"tenant": "other", "version": 1}, 400, "tenant"),
                ("PUT", f"{TENANTS}/nobody", {"version": 1}, 404, "no such tenant"),
                ("PUT", f"{TENANTS}/team/replication-factor", {}, 400, "replication_factor")):
            got, answer = say(node, method, path, body)
            self.assertEqual(got, status, (path, body, answer))
            self.assertIn(word, answer["message"])
        self.assertEqual(node.request("GET", f"{TENANTS}/nobody")[0], 404)
        for params in ({"since": "x"}, {"cluster": "xyz"}, {"wait": "long"}):
            self.assertEqual(node.request("GET", "/v1/tenant-settings", params)[0], 400)

    def writes(self, node, tenant, count, ts=None):
        """Samples of series that were not there before."""
        self.written_so_far = getattr(self, "written_so_far", 0) + count
        lines = "".join(f'm{{s="{self.written_so_far - s}"}} {s} {ts or int(time.time() * 1000)}\n' for s in range(count))
        return write(node, lines, tenant=tenant)

    def writing_heeds_them(self):
        self.settled("small", limits={"series": 2})
        for node in self.nodes:
            wait_for(f"{node.name} to heed it", lambda node=node: self.writes(node, "small", 5) == 429, 30)
        # What is agreed on hides all that the file says, also if it says nothing.
        wait_for("the file to count", lambda: self.writes(self.nodes[0], "of-file", 3) == 429, 30)
        self.settled("of-file")
        for node in self.nodes:
            wait_for(f"{node.name} to heed it", lambda node=node: self.writes(node, "of-file", 3) == 204, 30)

    def asks(self, tenant, query, at=None):
        code, body, _ = self.reader.raw("GET", "/api/v1/query", {"query": query, "time": at or time.time()},
                                        headers={"X-Scope-OrgID": tenant})
        return code, json.loads(body)

    def reading_heeds_them(self):
        wait_for("it to be there", lambda: self.asks("of-file", "sum(m)")[1].get("data", {}).get("result"), 60)
        self.settled("of-file", limits={"samples": 1})
        wait_for("the limit", lambda: self.asks("of-file", "sum(m)")[0] == 422, 30)
        self.settled("of-file", limits={"samples": 1000000})
        wait_for("no limit", lambda: self.asks("of-file", "sum(m)")[0] == 200, 30)
        at = int(time.time()) - 2 * HOUR
        wait_for("old samples", lambda: self.writes(self.nodes[0], "old", 1, at * 1000) == 204, 30)
        wait_for("them to be read", lambda: self.asks("old", "m", at)[1].get("data", {}).get("result"), 60)
        self.settled("old", limits={"retention": "1h"})
        wait_for("the retention", lambda: self.asks("old", "m", at)[1].get("data", {}).get("result") == [], 60)
        wait_for("the gauge", lambda: self.reader.metric("promfabric_api_tenant_settings") == 4)  # team, small, of-file, old

    def copies_are_a_least(self):
        node = self.nodes[1]
        for factor, status, word in ((4, 409, "/v1/admin/ring"), (3, 200, None), (3, 200, None)):
            got, answer = say(node, "PUT", f"{TENANTS}/team/replication-factor", {"replication_factor": factor})
            self.assertEqual(got, status, answer)
            self.assertIn(word or "", answer.get("message", ""))
        self.assertEqual((answer["replication_factor"], answer["copies"]), (3, 3))
        status, why = node.request("PUT", "/v1/admin/ring", {"copies": 2})
        self.assertEqual((status, why["error"]), (409, "conflict"))
        self.assertIn("tenant", why["message"])
        stale = {"replication_factor": 1, "version": answer["version"] - 1}
        self.assertEqual(say(node, "PUT", f"{TENANTS}/team/replication-factor", stale)[0], 409)
        stale["version"] = answer["version"]
        self.assertEqual(say(node, "PUT", f"{TENANTS}/team/replication-factor", stale)[0], 200)

    def from_a_terminal(self):
        self.assertIn("ls|get|add|put", self.cli("--help"))
        self.assertIn("queries=7 retention=30d", self.cli("add", "cli", "queries=7", "retention=30d", "level=one"))
        self.assertIn("level=all queries=8", self.cli("put", "cli", "queries=8", "retention=default", "level=all"))
        self.assertIn("cli", self.cli("ls"))
        self.assertEqual(json.loads(self.cli("get", "cli", "--json"))["limits"], {"queries": 8})
        for words, code in ((["put", "cli", "whims=3"], 2), (["put", "cli", "queries"], 2), (["get", "nobody"], 1),
                            (["add", "cli", "queries=9"], 1), (["put", "cli", "queries=9", "--version=1"], 1), ([], 2)):
            self.assertIn("error:", self.cli(*words, code=code))

    def documents_have_the_level_of_their_tenant(self):
        self.settled("docs", level="all")
        headers = {"X-Scope-OrgID": "docs"}
        wait_for("a write at all", lambda: self.put(self.nodes[0], "k", "1", headers)[0] == 200, 60)
        self.keepers["k2"].kill()
        for node in self.nodes:
            wait_for(f"{node.name} to want all", lambda node=node: self.put(node, "k", "2", headers)[0] == 503, 30)
            self.assertEqual(self.put(node, "k", "3", headers, level="quorum")[0], 200)
        self.settled("docs", level="one")
        for node in self.nodes:
            wait_for(f"{node.name} to want one", lambda node=node: self.put(node, "k", "4", headers)[0] == 200, 30)
        self.keepers["k2"].start()

    def they_outlive_everything_and_count_while_nobody_answers(self):
        before = self.ask("GET", TENANTS)
        self.ask("PUT", "/v1/queues/another")  # meta takes a snapshot
        for node in self.nodes:
            node.kill()
        wait_for("them to be stale", lambda: self.reader.metric("promfabric_api_tenant_settings_stale") == 1, 60)
        self.assertEqual(self.reader.metric("promfabric_api_tenant_settings"), len(before["tenants"]))
        # An API that knows nothing refuses, instead of guessing what a tenant may have.
        other = api(self.folder, self.store, self.nodes[0], self.keepers.values(), name="api-2")
        self.processes.append(other.start())
        code, body, _ = other.raw("GET", "/api/v1/query", {"query": "1"}, headers={"X-Scope-OrgID": "small"})
        self.assertEqual(code, 503, body)
        self.assertIn(b"missing: ingest nodes", other.raw("GET", "/readyz")[1])
        self.assertIn(b"what tenants may have", body)
        self.assertEqual(other.metric("promfabric_api_tenant_settings_unknown_total"), 1)
        self.assertEqual(other.metric("promfabric_api_tenant_settings_age_seconds"), -1)
        for node in self.nodes:
            node.start(ready=False)
        for node in self.nodes:
            wait_for(f"{node.name} to be ready", node.is_ready, 120)
        self.assertEqual(self.ask("GET", TENANTS), before)
        wait_for("them to be sure again", lambda: self.reader.metric("promfabric_api_tenant_settings_stale") == 0, 60)
        wait_for("the other one to know", lambda: other.raw("GET", "/api/v1/query", {"query": "1"})[0] == 200, 60)
        self.assertEqual(other.metric("promfabric_api_tenant_settings"), len(before["tenants"]))


class Alone(NodeTest):
    """One ingest node is enough for these."""

    def test_tenants_are_the_operators_business(self):
        keys = self.folder + "/keys"
        with open(keys, "w", encoding="utf-8") as file:
            file.write("all-of-it *\nmine team\n")
        subprocess.run(["chmod", "600", keys], check=True)
        node = self.node(args=["--api-keys", keys]).start("--bootstrap")
        for key, status in ((None, 401), ("mine", 403), ("all-of-it", 200)):
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            for method, path, body in (("POST", TENANTS, {"tenant": "team"}), ("GET", TENANTS, None), ("GET", f"{TENANTS}/team", None),
                                       ("GET", "/v1/tenant-settings", None)):
                got = node.raw(method, path, body=json.dumps(body) if body else None, headers=headers)[0]
                self.assertEqual(got, status, (key, method, path))

    def test_without_a_ring_nothing_has_copies(self):
        node = self.node().start("--bootstrap")
        self.assertEqual(say(node, "POST", TENANTS, {"tenant": "t", "replication_factor": 1})[0], 409)
        status, answer = say(node, "POST", TENANTS, {"tenant": "t"})
        self.assertEqual((status, "copies" in answer), (200, False))

    def test_readiness_says_what_is_missing(self):
        node = self.node().start(ready=False)
        wait_for("it to answer", lambda: self.answers(node))
        status, text, _ = node.raw("GET", "/readyz")
        self.assertEqual(status, 503)
        self.assertIn(b"missing: ", text)
        self.assertIn(b"in no cluster", text)

    def answers(self, node):
        try:
            return node.raw("GET", "/livez")[0] == 200
        except OSError:
            return False


del MigrationTest, DocumentTest

if __name__ == "__main__":
    unittest.main()
