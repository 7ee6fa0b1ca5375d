"""test_owners.py - state maps at the ingest nodes: definitions, loads, snapshots, and what a crash costs."""
import json
import random
import threading
import unittest

from states import StateTest, lines, wait_for


class Definitions(StateTest):
    def test_are_put_listed_and_deleted(self):
        node = self.node().start("--bootstrap")
        self.assertEqual(self.maps(node), {})
        team = self.define(node, "Team", metric="team_info", interval="30s", type="json")
        self.assertEqual((team["name"], team["metric"], team["interval"], team["rows"]), ("team", "team_info", "30s", 0))
        self.assertEqual(team["version"], team["created"])
        self.assertEqual(node.request("GET", "/api/v1/state/maps/TEAM")[1]["data"], team)
        # The second one who creates it, and one who has seen an older one.
        self.assertIn("team", self.define(node, "team", version=0, expect=409)["message"])
        newer = self.define(node, "team", version=team["version"], metric="team_info")
        self.assertEqual(newer["created"], team["created"])
        self.define(node, "team", version=team["version"], expect=409)
        # What does not fit.
        for bad in ({"kind": "ranged", "metric": "x"}, {"kind": "state", "condense": "1d"}, {"kind": "what"},
                    {"kind": "state", "metric": "a b"}, {"kind": "state", "metric": "x", "interval": "2h"}):
            self.define(node, "other", expect=400, **bad)
        self.define(node, "1st", expect=400)
        self.define(node, "other", metric="team_info", expect=409)
        self.assertEqual(node.request("PUT", "/api/v1/state/maps/other", body="{")[0], 400)
        # Tenants have their own.
        self.assertEqual(self.maps(node, "acme"), {})
        self.define(node, "team", "temporal", tenant="acme")
        self.assertEqual(list(self.maps(node)), ["team"])
        self.assertEqual(node.request("DELETE", "/api/v1/state/maps/team", {"version": 1})[0], 409)
        self.assertEqual(node.request("DELETE", "/api/v1/state/maps/team")[0], 204)
        self.assertEqual(node.request("GET", "/api/v1/state/maps/team")[0], 404)
        self.assertEqual(node.request("DELETE", "/api/v1/state/maps/team")[0], 404)
        self.assertEqual(list(self.maps(node, "acme")), ["team"])


class Loads(StateTest):
    def test_count_as_a_whole_or_not_at_all(self):
        node = self.node().start("--bootstrap")
        self.define(node, "team")
        good = self.load(node, {"map": "team", "key": "checkout", "value": "payments"})
        self.assertEqual((good["rows"], good["skipped"]), (1, 0))
        wrong = self.load(node, {"map": "team", "key": "basket", "value": "shop"}, {"map": "team", "value": "x"}, expect=400)
        self.assertIn("line 2", wrong["message"])
        self.assertEqual(self.maps(node)["team"]["rows"], good["position"])
        skipped = self.load(node, {"map": "team", "key": "basket", "value": "shop"}, {"map": "team", "value": "x"},
                            **{"on-error": "skip"})
        self.assertEqual((skipped["rows"], skipped["skipped"]), (1, 1))
        self.assertIn("line 2", skipped["reasons"][0])
        self.assertIn("no map else", self.load(node, {"map": "else", "key": "a", "value": "b"}, expect=400)["message"])
        self.load_text(node, b"key,value\ncart,shop\n", "csv", map="team")
        self.load_text(node, b"<referenceData><reference><map>TEAM</map><key>k</key><value>v</value></reference></referenceData>",
                       "xml")
        self.load_text(node, b"<referenceData>", "xml", expect=400)
        self.load_text(node, b"x", "yaml", expect=400)
        self.assertEqual(self.snapshot(node, "team")[0], 200)


class Snapshots(StateTest):
    def test_have_versions_and_sums_and_can_be_resumed(self):
        node = self.node().start("--bootstrap")
        team = self.define(node, "team")
        status, _, headers = self.snapshot(node, "team")
        self.assertEqual((status, headers["X-Promfabric-State-Created"]), (204, str(team["created"])))
        first = self.load(node, {"map": "team", "key": "a", "value": "1"})["position"]
        status, whole, headers = self.snapshot(node, "team")
        self.assertEqual((status, int(headers["X-Promfabric-State-Version"])), (200, first))
        self.assertGreater(int(headers["X-Promfabric-State-As-Of"]), 0)
        self.assertEqual(len(headers["X-Promfabric-State-Sum"]), 16)
        status, rest, again = self.snapshot(node, "team", version=first, headers={"Range": "bytes=4096-"})
        self.assertEqual((status, rest), (206, whole[4096:]))
        self.assertEqual(again["X-Promfabric-State-Sum"], headers["X-Promfabric-State-Sum"])
        self.assertEqual(self.snapshot(node, "team", after=first)[0], 304)
        second = self.load(node, {"map": "team", "key": "b", "value": "2"})["position"]
        wait_for("the newer one", lambda: self.snapshot(node, "team", after=first)[2]["X-Promfabric-State-Version"] == str(second))
        # The older one stays for who has pinned it.
        self.assertEqual(self.snapshot(node, "team", version=first)[1], whole)
        self.assertEqual(self.snapshot(node, "team", version=second + 1000)[0], 410)
        self.assertEqual(self.snapshot(node, "other")[0], 404)
        self.assertEqual(self.snapshot(node, "team", tenant="acme")[0], 404)

    def test_a_damaged_one_is_made_again(self):
        node = self.node().start("--bootstrap")
        self.define(node, "team")
        position = self.load(node, {"map": "team", "key": "a", "value": "1"})["position"]
        _, whole, _ = self.snapshot(node, "team")
        path, = node.data.glob(f"state/tenants/default/snapshots/team/{position:016x}/data.mdb")
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        self.assertEqual(self.snapshot(node, "team")[1], whole)
        self.assertIn("damaged", node.log_text())


class Three(StateTest):
    def test_all_have_everything_whoever_is_asked(self):
        nodes = self.cluster()
        self.define(nodes[1], "team")
        for i, node in enumerate(nodes):
            last = self.load(node, {"map": "team", "key": f"k{i}", "value": "x"}, {"map": "team", "key": "all", "value": str(i)})
        self.wait_rows(nodes, "team", last["position"])
        versions = {self.snapshot(node, "team")[2]["X-Promfabric-State-Version"] for node in nodes}
        self.assertEqual(versions, {str(last["position"])})

    def test_a_node_that_was_away_has_everything_when_it_comes_back(self):
        nodes = self.cluster()
        self.define(nodes[0], "team")
        nodes[2].kill()
        for i in range(5):
            last = self.load(nodes[i % 2], {"map": "team", "key": f"k{i}", "value": "x"})
        nodes[2].start()
        self.wait_rows(nodes, "team", last["position"])

    def test_owners_that_are_killed_while_loads_run(self):
        nodes = self.cluster()
        self.define(nodes[0], "team")
        big = lines(*[{"map": "team", "key": f"key {i}", "value": "v" * 100} for i in range(20000)])
        last = 0
        for round_ in range(3):
            victim = nodes[round_]
            others = [node for node in nodes if node is not victim]
            victim.kill()
            answer = wait_for("a load", lambda: self.try_load(others[0], big), 60)
            last = max(last, answer["position"])
            victim.start(ready=False)
            wait_for("it to be ready", victim.is_ready)
        self.wait_rows(nodes, "team", last)

    def try_load(self, node, body):
        status, answer = node.request("POST", "/api/v1/state/load", {"format": "jsonl"}, body, timeout=60)
        return answer["data"] if status == 200 else None


class Killed(StateTest):
    """Nodes are killed, one after the other, between loads and questions, at moments that a seed chooses. Time decides what the map says,
    so that a load that was given up and counts later all the same changes nothing."""
    KEYS = [f"k{i}" for i in range(300)]

    def look(self, node):
        """The load that it answers with: all keys have the same one. None: it does not answer now."""
        try:
            status, answer = node.request("POST", "/api/v1/state/team", body=json.dumps({"keys": self.KEYS}), timeout=10)
        except OSError:
            return None
        if status != 200:
            return None
        values = {row and row["value"] for row in answer["data"]["rows"]}
        self.assertEqual(len(values), 1, "half of a load")
        return values.pop()

    def offer(self, nodes, number):
        """Load it at whoever takes it; the node that did."""
        body = lines(*[{"map": "team", "key": key, "time": f"2026-01-01T00:00:{number:02}Z", "value": number} for key in self.KEYS])
        for node in nodes:
            try:
                status, answer = node.request("POST", "/api/v1/state/load", {"format": "jsonl"}, body, timeout=20)
            except OSError:
                continue
            if status == 200:
                return node, answer["data"]["position"]
        return None

    def ask_on(self, nodes, stop, wrong):
        """No node goes back, as long as it is not started again."""
        last = {}
        while not stop.is_set():
            for node in nodes:
                found = self.look(node)
                if found is not None and found < last.get(node.name, 0):
                    wrong.append((node.name, last[node.name], found))
                if found is not None:
                    last[node.name] = found

    def test_answers_are_whole_loads_and_what_was_acknowledged_stays(self):
        prng, nodes, wrong, stop = random.Random(22), self.cluster(), [], threading.Event()
        self.define(nodes[0], "team", "temporal", type="integer")
        self.offer(nodes, 1)
        asking = threading.Thread(target=self.ask_on, args=(nodes, stop, wrong))
        asking.start()
        self.addCleanup(asking.join)
        self.addCleanup(stop.set)
        number = 1
        for _ in range(3):
            victim = prng.choice(nodes)
            killer = threading.Timer(prng.uniform(0, 0.3), victim.kill)
            killer.start()
            for _ in range(3):
                number += 1
                # The victim as often as others; what was cut off is loaded again, by a node that is there.
                turn = prng.sample(nodes, len(nodes))
                taker, position = wait_for("a load", lambda turn=turn: self.offer(turn, number), 60)
                if taker is not victim:
                    self.assertEqual(wait_for("an answer", lambda taker=taker: self.look(taker)), number)
            killer.join()
            victim.start(ready=False)
            wait_for("it to be ready", victim.is_ready, 60)
        self.wait_rows(nodes, "team", position)
        stop.set()
        asking.join()
        self.assertEqual(wrong, [])
        self.assertEqual([self.look(node) for node in nodes], [number] * 3)


if __name__ == "__main__":
    unittest.main()
