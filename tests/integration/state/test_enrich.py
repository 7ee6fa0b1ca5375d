"""test_enrich.py - samples that come in get the labels that state maps say: rules over HTTP and from a terminal, every kind of map, maps
that are not there, a node that dies."""
import datetime
import json
import os
import subprocess
import unittest

from enriching import EnrichTest
from messages import Series, now_ms, text

BINARY = os.environ["PROMFABRIC_BINARY"]
HOUR = 3600 * 1000


def stamp(ms):
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Rules(EnrichTest):
    def test_are_put_listed_and_removed(self):
        node = self.node().start("--bootstrap")
        self.assertEqual(self.rules(node), [])
        self.team_map(node)
        later = self.put_rule(node, "later", map="TEAM", **{"from": ["a", "b"]}, prefix="x_", separator="/", order=7, missing="leave",
                              overwrite=True)
        self.assertEqual([r["name"] for r in self.rules(node)], ["team", "later"])
        self.assertEqual({k: v for k, v in later.items() if k != "version"},
                         {"name": "later", "map": "team", "from": ["a", "b"], "prefix": "x_", "separator": "/", "order": 7,
                          "missing": "leave", "overwrite": True})
        status, one = node.request("GET", "/api/v1/state/rules/LATER")
        self.assertEqual((status, one["data"]), (200, later))
        # Only if it is of that version.
        self.assertIn("is of version", self.put_rule(node, "later", 409, 0, map="team", **{"from": "a"}))
        self.assertIn("there is no rule new", self.put_rule(node, "new", 409, 9, map="team", **{"from": "a"}))
        changed = self.put_rule(node, "later", version=later["version"], map="team", **{"from": "a"})
        self.assertGreater(changed["version"], later["version"])
        # A map that a rule looks at stays.
        status, answer = node.request("DELETE", "/api/v1/state/maps/team")
        self.assertEqual((status, "what rule later looks at" in answer["message"]), (409, True), answer)
        for name in ("team", "later"):
            self.assertEqual(node.request("DELETE", f"/api/v1/state/rules/{name}")[0], 204)
        self.assertEqual(node.request("DELETE", "/api/v1/state/rules/team")[0], 404)
        self.assertEqual(node.request("DELETE", "/api/v1/state/maps/team")[0], 204)
        self.assertEqual(self.rules(node), [])

    def test_what_is_wrong_is_told(self):
        node = self.node().start("--bootstrap")
        self.assertIn("no map team", self.put_rule(node, "r", 400, map="team", **{"from": "a"}))
        self.define(node, "team", type="string")
        self.define(node, "on_call", "session")
        good = {"map": "team", "from": "a", "to": "b"}
        for why, bad in (("no map nowhere", {"map": "nowhere"}), ("\"from\"", {"from": []}), ("\"from\"", {"from": 5}),
                         ("label", {"from": ["a", "__b"]}), ("label", {"from": [""]}), ("at most 8", {"from": ["a"] * 9}),
                         ("label", {"to": "__name__"}), ("label", {"to": ""}), ("200", {"to": "a" * 201}),
                         ("one of", {"prefix": "a"}), ("one of", {"members": {"a": "b"}}), ("\"missing\"", {"missing": "what"}),
                         ("overwrite", {"overwrite": 1}), ("\"order\"", {"order": -1}), ("\"order\"", {"order": 10**7}),
                         ("separator", {"separator": "a" * 17}), ("member what", {"what": 1}), ("name", {"name": "a-b"}),
                         ("called", {"name": "other"}), ("\"map\"", {"map": 5}), ("u0000", {"to": "a\0b"})):
            self.assertIn(why, self.put_rule(node, "r", 400, **{**good, **bad}), bad)
        for body in ("", "[]", "5", "{", "{\"map\":\"team\"}", "x" * 100000):
            self.assertEqual(node.request("PUT", "/api/v1/state/rules/r", body=body)[0], 400, body[:20])
        self.assertEqual(node.request("PUT", "/api/v1/state/rules/a-b", body=json.dumps(good))[0], 400)
        # A map of a kind or type that the rule cannot use.
        self.assertIn("no members", self.put_rule(node, "r", 400, map="team", **{"from": "a"}))
        self.assertIn("no values", self.put_rule(node, "r", 400, map="on_call", **{"from": "a"}, members={"a": "b"}))
        self.assertIn("two members", self.put_rule(node, "r", 400, map="team", **{"from": "a"}, members={"a": "b", "c": "b"}))
        for i in range(64):
            self.put_rule(node, f"r{i}", **good)
        self.assertIn("at most 64", self.put_rule(node, "more", 422, **good))
        self.assertEqual(len(self.rules(node)), 64)

    def test_from_a_terminal(self):
        node = self.node().start("--bootstrap")

        def state(*words, code=0, stdin=None):
            done = subprocess.run([BINARY, "state", words[0], f"--url=http://127.0.0.1:{node.port}", *words[1:]], capture_output=True,
                                  text=True, input=stdin, timeout=120)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            return done.stdout if code == 0 else done.stderr

        self.define(node, "team")
        self.assertEqual(state("rules", "list"), "")
        rule = '{"name":"team","map":"team","from":["service"],"to":"team"}'
        self.assertEqual(state("rules", "put", rule), "rule team: from map team\n")
        self.assertEqual(state("rules", "put", "-", stdin=rule), "rule team: from map team\n")
        listed = json.loads(state("rules", "list"))
        self.assertEqual({**json.loads(rule), "version": listed["version"]}, listed)
        self.assertIn("at least name", state("rules", "put", "{}", code=1))
        self.assertIn("no map nowhere", state("rules", "put", '{"name":"a","map":"nowhere","from":"a"}', code=1))
        state("rules", "rm", "team")
        self.assertIn("no rule team", state("rules", "rm", "team", code=1))
        self.assertIn("rules list", state("rules", "what", code=2))


class Labels(EnrichTest):
    def test_are_those_that_maps_say(self):
        node, now = self.node().start("--bootstrap"), now_ms()
        self.team_map(node)
        for name, kind in (("service", "state"), ("version", "temporal"), ("site", "ranged"), ("on_call", "session")):
            self.define(node, name, kind)
        self.load(node, {"map": "service", "key": "checkout/eu", "value": {"tier": 1, "owner": {"a": 1}, "none": None, "key": "k"}},
                  {"map": "version", "key": "checkout", "time": stamp(now - 2 * HOUR), "value": "v1"},
                  {"map": "version", "key": "checkout", "time": stamp(now - 1000), "value": "v2"},
                  {"map": "site", "from": 167772160, "to": 184549375, "value": "all"},
                  {"map": "site", "from": 167772416, "to": 167772671, "value": "cardiff"},
                  {"map": "on_call", "key": "payments", "start": stamp(now - 1500), "end": stamp(now - 500)})
        self.put_rule(node, "service", map="service", **{"from": ["service", "region"]}, separator="/", prefix="s_")
        self.put_rule(node, "tier", map="service", **{"from": ["service", "region"]}, separator="/",
                      members={"tier": "tier", "missing": "missing"})
        self.put_rule(node, "version", map="version", **{"from": "service"}, to="version")
        self.put_rule(node, "site", map="site", **{"from": "instance"}, to="site", overwrite=True)
        self.put_rule(node, "watched", map="on_call", **{"from": "team"}, to="watched", order=1)  # of a label that another rule added
        times = [now - 3 * HOUR, now - 2000, now - 1200, now - 900, now - 100]
        self.write_all(node, Series({"__name__": "a", "service": "checkout", "region": "eu"}, [(t, 1.0) for t in times[1:]]),
                       Series({"__name__": "b", "service": "nobody", "instance": "10.0.1.7:9100", "site": "x"}, [(now, 1.0)]),
                       Series({"__name__": "b", "service": "basket", "team": "mine", "instance": "host:1"}, [(now, 1.0)]),
                       Series({"__name__": "c", "other": "x"}, [(now, 1.0)]), version=2)
        same = {"region": "eu", "s_key": "k", "s_owner": '{"a":1}', "s_tier": "1", "service": "checkout", "team": "payments",
                "tier": "1"}
        self.assertEqual(self.written(node, name="a"), {
            tuple(sorted({**same, "version": "v1"}.items())): {times[1]},
            tuple(sorted({**same, "version": "v1", "watched": "true"}.items())): {times[2]},
            tuple(sorted({**same, "version": "v2", "watched": "true"}.items())): {times[3]},
            tuple(sorted({**same, "version": "v2"}.items())): {times[4]}})
        self.assertEqual(set(self.written(node, name="b")), {
            (("instance", "10.0.1.7:9100"), ("service", "nobody"), ("site", "cardiff")),
            (("instance", "host:1"), ("service", "basket"), ("team", "mine"))})
        self.assertEqual(set(self.written(node, name="c")), {(("other", "x"),)})
        self.assertEqual(node.metric("promfabric_ingest_enriched_samples_total"), 5)
        self.assertEqual(node.metric("promfabric_ingest_enrich_splits_total"), 3)
        # Other protocols come the same way.
        self.assertEqual(text(node, f'd{{service="checkout"}} 1 {now}\n')[0], 204)
        self.assertEqual(node.raw("POST", "/write", {"precision": "ms"}, f"e,service=checkout value=1 {now}\n".encode())[0], 204)
        otlp = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "f", "gauge": {"dataPoints": [
            {"asDouble": 1, "timeUnixNano": str(now * 10**6), "attributes": [{"key": "service", "value": {"stringValue": "checkout"}}]}]}}]}]}]}
        self.assertEqual(node.raw("POST", "/api/v1/otlp/v1/metrics", body=json.dumps(otlp).encode(),
                                  headers={"Content-Type": "application/json"})[0], 200)
        for name in ("d", "e_value", "f"):
            self.assertEqual([dict(labels).get("team") for labels in self.written(node, name=name)], ["payments"], name)

    def test_limits_hold_for_what_comes_of_it(self):
        node, now = self.node(args=["--labels-max", "3", "--label-value-bytes", "40"]).start("--bootstrap"), now_ms()
        self.team_map(node)
        self.load(node, {"map": "team", "key": "long", "value": "x" * 41})
        why = self.write_all(node, Series({"__name__": "a", "service": "checkout"}, [(now, 1.0)]),
                             Series({"__name__": "b", "service": "checkout", "more": "x"}, [(now, 1.0)]),
                             Series({"__name__": "c", "service": "long"}, [(now, 1.0)]), expect=400)
        self.assertIn("too many labels (its limit is labels=3)", why)
        self.assertIn('team="payments"', why)
        self.assertEqual(set(self.written(node)), {(("service", "checkout"), ("team", "payments"))})

    def test_a_map_without_rows(self):
        node, now = self.node().start("--bootstrap"), now_ms()
        self.define(node, "team")
        self.put_rule(node, "team", map="team", **{"from": "service"}, to="team")
        series = [Series({"__name__": "a", "service": "checkout"}, [(now, 1.0)])]
        self.assertIn("rule team: map team has no rows", self.write_all(node, *series, expect=503))
        self.assertEqual(node.metric("promfabric_ingest_enrich_refused_total"), 1)
        # Series that it does not concern, and other tenants, are written.
        self.write_all(node, Series({"__name__": "b"}, [(now, 1.0)]))
        self.write_all(node, *series, headers=self.as_tenant("acme"))
        self.put_rule(node, "team", map="team", **{"from": "service"}, to="team", missing="leave")
        self.write_all(node, Series({"__name__": "a", "service": "checkout"}, [(now + 1, 1.0)]))
        self.load(node, {"map": "team", "key": "checkout", "value": "payments"})
        self.write_all(node, Series({"__name__": "a", "service": "checkout"}, [(now + 2, 1.0)]))
        self.assertEqual(len(self.written(node, name="a")), 2)

    def test_rules_and_maps_survive_a_kill(self):
        node, now = self.node().start("--bootstrap"), now_ms()
        self.team_map(node)
        node.kill()
        node.start()
        self.assertEqual([r["name"] for r in self.rules(node)], ["team"])
        self.write_all(node, Series({"__name__": "a", "service": "checkout"}, [(now, 1.0)]))
        self.assertEqual(set(self.written(node)), {(("service", "checkout"), ("team", "payments"))})


if __name__ == "__main__":
    unittest.main()
