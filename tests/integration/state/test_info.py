"""test_info.py - state maps as info series: the same answers as the same series imported as samples would give, whatever the number
of shards; one version for a whole query, while workers die and rows are loaded; an error where a map cannot be read."""
import importlib.util
import json
import os
import signal
import sys
import threading
import unittest

from states import StateTest, wait_for

API = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api")
spec = importlib.util.spec_from_file_location("fabric", os.path.join(API, "harness.py"))
fabric_of = importlib.util.module_from_spec(spec)
sys.modules["fabric"] = fabric_of
spec.loader.exec_module(fabric_of)

START = fabric_of.START  # whole minutes
HOUR = 3600
INSTANCES = 6
FOR_EVER = START + 10 * HOUR


def moment(second):
    import datetime
    return datetime.datetime.fromtimestamp(second, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def line(name, labels, spans):
    """A series that is scraped every minute while one of [start, end) holds, with a marker at its end; for load_series, each 15 s."""
    values = []
    for at in range(START, START + 2 * HOUR + 1, 15):
        if any(end == at for _, end in spans):
            values.append("stale")
        else:
            values.append("1" if at % 60 == 0 and any(start <= at < end for start, end in spans) else "_")
    return name + "{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "} " + " ".join(values)


def teams(names):
    return [{"map": "team", "key": f"i{i}", "value": {"instance": f"i{i}", "team": names[i % len(names)], "tier": i}}
            for i in range(INSTANCES)]


# (key, from, to, value) and (key, from, to)
VERSIONS = [("i0", START, START + 900, "1.0"), ("i0", START + 900, START + 3975, "1.1"),
            ("i0", START + 3975, FOR_EVER, "1.2"), ("i1", START + 2010, FOR_EVER, "2.0")]
ON_CALL = [("alice", START + 300, START + 2745), ("bob", START + 2745, START + 5400), ("alice", START + 5400, START + 6000)]


def sample_lines():
    lines = [f'temperature{{instance="i{i}",job="a"}} {20 + i}-0.25x480' for i in range(INSTANCES)]
    for row in teams(["payments", "shop"]):
        labels = {"key": row["key"], **{k: str(v) for k, v in row["value"].items()}}
        lines.append(line("team_samples", labels, [(0, FOR_EVER)]))
    for key, start, end, version in VERSIONS:
        lines.append(line("version_samples", {"key": key, "instance": key, "version": version}, [(start, end)]))
    for name in ("alice", "bob"):
        lines.append(line("on_call_samples", {"key": name}, [(s, e) for who, s, e in ON_CALL if who == name]))
    return lines


QUERIES = ["temperature * on(instance) group_left(team) team_info",
           "sum by (team) (temperature * on(instance) group_left(team) team_info)",
           "team_info", 'team_info{key="i3"}', 'team_info{key=~"i[12]",team!="shop"}', 'team_info{team="nobody"}',
           "count by (tier) (team_info)", "version_info", '{__name__=~"version_i.*",key="i0"}', "count_over_time(version_info[10m])",
           "count by (version) (version_info)", "max_over_time(version_info[30m:5m])", "last_over_time(on_call_info[4m])",
           "timestamp(version_info)", "on_call_info", "absent(on_call_info)", "on_call_info offset 20m",
           "temperature * on(instance) group_left(version) version_info", "topk(1, version_info)"]


class InfoTest(StateTest):
    headers = {}

    def as_tenant(self, tenant):
        return {**super().as_tenant(tenant), **self.headers}

    def fabric(self, node, workers=2, **more):
        fabric = fabric_of.Fabric(workers, api_flags=[f"--ingest=127.0.0.1:{node.port}", *more.pop("api_flags", ())],
                                  store=self.store, **more)
        self.addCleanup(fabric.close)
        fabric.wait_workers(workers)
        return fabric

    def start(self, *args):
        self.store = os.path.join(self.folder, "store")
        os.makedirs(self.store)
        return self.node(args=[f"--store={self.store}", *args]).start("--bootstrap")

    def define_all(self, node, tenant=None):
        self.define(node, "team", metric="team_info", tenant=tenant)
        self.define(node, "version", "temporal", metric="version_info", tenant=tenant)
        self.define(node, "on_call", "session", metric="on_call_info", tenant=tenant)
        self.define(node, "site", "ranged", tenant=tenant)

    def load_all(self, node, tenant=None):
        self.load(node, *teams(["payments", "shop"]),
                  *({"map": "version", "key": key, "time": moment(start), "value": {"instance": key, "version": version}}
                    for key, start, _, version in VERSIONS),
                  *({"map": "on_call", "key": key, "start": moment(start), "end": moment(end)} for key, start, end in ON_CALL),
                  {"map": "site", "from": 1, "to": 9, "value": "cardiff"}, tenant=tenant)

    def fill(self, fabric, node, tenant, shards):
        """The same as samples, in so many shards, and as maps."""
        fabric_of.load(self.store, sample_lines(), tenant, shards)
        self.define_all(node, tenant)
        self.load_all(node, tenant)
        wait_for("the maps", lambda: self.ask(fabric, "on_call_info", tenant))

    def ask(self, fabric, expr, tenant, step=45):
        """From where no window has what was before the samples."""
        return self.plain(fabric.data("/api/v1/query_range",
                                      {"query": expr, "start": START + 1800, "end": START + 2 * HOUR, "step": step},
                                      headers=self.as_tenant(tenant))["result"])

    def plain(self, result):
        return sorted(result, key=lambda one: json.dumps(one["metric"], sort_keys=True))

    def as_info(self, answer):
        return self.plain(json.loads(json.dumps(answer).replace("_samples", "_info")))


class Answers(InfoTest):
    def check_lists(self, fabric, tenant):
        times = {"start": START, "end": START + 2 * HOUR}
        for path in ("series", "labels", "label/version/values", "label/key/values"):
            answers = [fabric.data(f"/api/v1/{path}", {"match[]": name, **times}, headers=self.as_tenant(tenant))
                       for name in ("version_info", "version_samples")]
            self.assertEqual(json.dumps(answers[0], sort_keys=True),
                             json.dumps(answers[1], sort_keys=True).replace("_samples", "_info"), path)
        names = fabric.data("/api/v1/label/__name__/values", headers=self.as_tenant(tenant))  # of all times
        self.assertEqual(names, ["on_call_info", "on_call_samples", "team_info", "team_samples", "temperature", "version_info",
                                 "version_samples"])
        self.assertIn("tier", fabric.data("/api/v1/labels", {"scan": "0"}, headers=self.as_tenant(tenant)))

    def test_answers_are_those_of_the_same_samples(self):
        node = self.start()
        fabric = self.fabric(node)
        for shards in (1, 4, 8):
            tenant = f"of{shards}"
            self.fill(fabric, node, tenant, shards)
            for expr in QUERIES:
                wanted = self.ask(fabric, expr.replace("_i.", "_s.").replace("_info", "_samples"), tenant)
                for _ in range(2 if shards == 4 else 1):  # also out of what workers keep
                    self.assertEqual(self.ask(fabric, expr, tenant), self.as_info(wanted), (expr, tenant))
            self.check_lists(fabric, tenant)
        self.assertEqual(len(self.ask(fabric, "team_info", "of4")), INSTANCES)  # there was something to compare
        self.assertEqual(len(self.ask(fabric, "version_info", "of4")), 3)
        # Other tenants have none of it, and a map without samples beside it needs none.
        self.assertEqual(self.ask(fabric, "team_info", "nobody"), [])
        self.define_all(node, "alone")
        self.load_all(node, "alone")
        wait_for("the maps", lambda: len(self.ask(fabric, "team_info", "alone")) == INSTANCES)


JOINS = [QUERIES[1], "temperature * on(instance) group_left(version) version_info",
         "sum(temperature) * on() group_left(key) on_call_info"]


class Retries(InfoTest):
    def asked_while_a_worker_dies(self, fabric, victim, expr, tenant):
        """It is given works, says nothing, and is killed: others do them."""
        before, answers = fabric.metric("promfabric_api_work_assigned_total"), []
        fabric.workers[victim].signal(signal.SIGSTOP)
        thread = threading.Thread(target=lambda: answers.append(self.ask(fabric, expr, tenant)))
        thread.start()
        wait_for("works to be assigned", lambda: fabric.metric("promfabric_api_work_assigned_total") > before)
        fabric.workers[victim].kill()
        thread.join()
        fabric.start_worker(victim)
        fabric.wait_workers(2, 60)
        self.assertEqual(len(answers), 1, "no answer")
        return answers[0]

    def test_joins_are_those_of_the_same_samples_while_workers_die(self):
        node = self.start()
        fabric = self.fabric(node)
        for shards in (1, 4, 8):
            tenant = f"of{shards}"
            self.fill(fabric, node, tenant, shards)
            # One of the three joins each, of state, of temporal state, of sessions; and other workers.
            for number, expr in enumerate(JOINS):
                wanted = self.as_info(self.ask(fabric, expr.replace("_info", "_samples"), tenant))
                self.assertTrue(wanted, expr)
                if number == (1, 4, 8).index(shards) or shards == 8:
                    self.assertEqual(self.asked_while_a_worker_dies(fabric, number % 2, expr, tenant), wanted, (expr, tenant))
                self.assertEqual(self.ask(fabric, expr, tenant), wanted, (expr, tenant))
        self.assertGreater(fabric.metric("promfabric_api_work_reassigned_total"), 0)


class Versions(InfoTest):
    def test_a_query_reads_one_version_while_workers_die_and_rows_are_loaded(self):
        node = self.start()
        fabric = self.fabric(node)
        fabric_of.load(self.store, sample_lines(), "default", 4)
        self.define_all(node)
        self.load_all(node)
        wait_for("the maps", lambda: self.ask(fabric, "team_info", None))
        versions, wrong, stopping = set(), [], threading.Event()

        def keep_asking():
            while not stopping.is_set():
                # Two leaves of four works each: all of them have the rows of one load.
                status, answer = fabric.json("/api/v1/query", {
                    "query": "count by (team) (team_info) + on (team) count by (team) (team_info{key=~'.+'})", "time": START + 60})
                result = answer.get("data", {}).get("result", [])
                found = sorted((one["metric"]["team"], one["value"][1]) for one in result)
                if status != 200 or len(found) != 1 or found[0][1] != str(2 * INSTANCES):
                    wrong.append((status, answer))
                versions.update(found)

        self.load(node, *teams(["team0"]))
        wait_for("the first load", lambda: {one["metric"]["team"] for one in self.ask(fabric, "team_info", None)} == {"team0"})
        thread = threading.Thread(target=keep_asking)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(stopping.set)
        for number in range(1, 3):
            fabric.workers[number % 2].kill()
            self.load(node, *teams([f"team{number}"]))
            fabric.start_worker(number % 2)
            fabric.wait_workers(2, 60)
            wait_for(f"load {number}", lambda number=number: any(name == f"team{number}" for name, _ in set(versions)), 60)
        stopping.set()
        thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(len(versions), 3)

    def receipt(self, fabric):
        _, _, events = fabric.events("count(team_info)", START * 1000, (START + 60) * 1000, 60000, explain=True)
        plan = next(event for event in events if event["type"] == "plan")
        return plan["data"], events[-1]["data"]["coverage"]["checksum"]

    def test_which_maps_a_query_reads_is_explained(self):
        node = self.start()
        fabric = self.fabric(node, 1)
        self.define_all(node)
        self.load_all(node)
        wait_for("the maps", lambda: fabric.query("team_info", START)["result"])
        plan, before = self.receipt(fabric)
        self.assertEqual([work.get("maps") for work in plan["works"]], [1])
        self.assertEqual(self.receipt(fabric)[1], before)
        self.load(node, *teams(["new"]))
        wait_for("what it stands on to be another version", lambda: self.receipt(fabric)[1] != before)

    def test_what_is_defined_again_or_gone_is_seen(self):
        node = self.start()
        fabric = self.fabric(node)
        self.assertEqual(fabric.query("team_info", START)["result"], [])
        self.define_all(node)
        self.load_all(node)
        wait_for("it", lambda: len(fabric.query("team_info", START)["result"]) == INSTANCES)
        self.define(node, "team", metric="team_of")
        wait_for("its new name", lambda: len(fabric.query("team_of", START)["result"]) == INSTANCES)
        self.assertEqual(fabric.query("team_info", START)["result"], [])
        told = fabric.data("/api/v1/metadata")
        self.assertEqual(told["team_of"], [{"type": "info", "help": "Rows of the state map team.", "unit": ""}])
        self.assertEqual(sorted(told), ["on_call_info", "team_of", "version_info"])
        self.assertEqual(list(fabric.data("/api/v1/metadata", {"metric": "version_info"})), ["version_info"])
        self.assertEqual(fabric.data("/api/v1/metadata", {"metric": "team_info"}), {})
        node.request("DELETE", "/api/v1/state/maps/team")
        wait_for("nothing", lambda: fabric.query("team_of", START)["result"] == [])
        self.define(node, "team", metric="team_info")
        self.load(node, {"map": "team", "key": "i9", "value": "new"})
        rows = wait_for("the new map", lambda: fabric.query("team_info", START)["result"])
        self.assertEqual([one["metric"] for one in rows], [{"__name__": "team_info", "key": "i9", "value": "new"}])


class Nodes(InfoTest):
    def test_three_nodes_and_one_of_them_away(self):
        self.store = os.path.join(self.folder, "store")
        os.makedirs(self.store)
        nodes = self.cluster(args=[f"--store={self.store}"])
        fabric = self.fabric(nodes[0], api_flags=[f"--ingest=127.0.0.1:{node.port}" for node in nodes[1:]])
        self.define_all(nodes[1])
        self.load_all(nodes[2])
        wait_for("it", lambda: len(fabric.query("team_info", START)["result"]) == INSTANCES)
        nodes[0].kill()

        def all_there():
            status, answer = fabric.json("/api/v1/query", {"query": "team_info", "time": START})
            self.assertIn(status, (200, 503), answer)
            self.assertTrue(status == 503 or len(answer["data"]["result"]) == INSTANCES, answer)
            return status == 200
        wait_for("the others", all_there, 60)

    def test_a_large_map_is_copied_beside_the_answers(self):
        node = self.start()
        fabric = self.fabric(node, 1)
        self.define(node, "large", metric="large_info")
        for part in range(3):  # more than 32 MiB
            self.load(node, *({"map": "large", "key": f"{part}-{i}", "value": {"text": chr(97 + i) * 1000000, "part": part}}
                              for i in range(14)))

        def count():
            status, answer = fabric.json("/api/v1/query", {"query": "count by (part) (large_info)", "time": START})
            if status != 200:
                self.assertIn("no copy of it yet", answer["error"])
                return None
            return sorted(one["value"][1] for one in answer["data"]["result"])
        self.assertEqual(wait_for("a copy", count, 60), ["14"] * 3)


class Errors(InfoTest):
    def test_a_map_that_cannot_be_had_is_an_error(self):
        keys = os.path.join(self.folder, "keys")
        with open(keys, "w", encoding="ascii") as file:
            file.write("secret-of-the-operator * ops\n")
        os.chmod(keys, 0o600)
        key = os.path.join(self.folder, "key")
        with open(key, "w", encoding="ascii") as file:
            file.write("secret-of-the-operator\n")
        os.chmod(key, 0o600)
        self.headers = {"Authorization": "Bearer secret-of-the-operator"}
        node = self.start(f"--api-keys={keys}")
        fabric = self.fabric(node, 1, api_flags=[f"--ingest-key={key}"])  # and no key for the worker
        self.define_all(node, "default")
        self.load_all(node, "default")
        status, answer = wait_for("an error", lambda: (said := fabric.json("/api/v1/query", {
            "query": "team_info", "time": START}))[1].get("data", {}).get("result") != [] and said)
        self.assertNotEqual(status, 200, answer)
        self.assertEqual(fabric.query("temperature", START)["result"], [])  # which no map has


if __name__ == "__main__":
    unittest.main()
