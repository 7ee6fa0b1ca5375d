"""test_keda.py - the endpoint KEDA polls, by the scaler's own rules and the manifest's own fields."""
import json
import os
import threading
import unittest
import urllib.parse

import keda
from harness import START, Fabric, free_port, load, standard_lines, wait_for


def scaled_object(overlay):
    with open(f"{os.environ['PROMFABRIC_MANIFESTS']}/{overlay}.json") as file:
        return next(o for o in json.load(file) if o["kind"] == "ScaledObject")


class Rules(unittest.TestCase):
    """The rules themselves, on answers that try them."""

    def test_paths(self):
        text = '{"foo":[{"bar":42}],"a.b":7,"a":{"b":"1500m"},"k":{"x":1},"k":{"x":2},"no":null}'
        for path, value in (("foo.0.bar", 42), (r"a\.b", 7), ("a.b", 1.5), ("f*.0.b?r", 42),
                            ("foo.#", 1)):
            self.assertEqual(keda.number(text, path), value, path)

    def test_the_first_of_equal_keys_wins(self):
        self.assertEqual(keda.number('{"k":{"x":1},"k":{"x":2}}', "k.x"), 1)

    def test_only_numbers_and_quantities(self):
        for text in ('{"v":true}', '{"v":null}', '{"v":{}}', '{"v":[1]}', '{"v":"much"}', '{}'):
            with self.assertRaises(keda.ScalerError, msg=text):
                keda.number(text, "v")
        for text, value in (('{"v":"2Ki"}', 2048), ('{"v":"1e3"}', 1000), ('{"v":-0.5}', -0.5)):
            self.assertEqual(keda.number(text, "v"), value)


class Endpoint(unittest.TestCase):
    """Two APIs without a worker: one idle, one with queries that wait."""

    @classmethod
    def setUpClass(cls):
        cls.spec = scaled_object("s3")["spec"]
        cls.triggers = {t["name"]: t for t in cls.spec["triggers"]}
        cls.busy = Fabric(1, ("--worker-wait=60s",), start_workers=False)
        cls.idle = Fabric(1, ("--worker-wait=60s",), start_workers=False)
        cls.addClassCleanup(cls.idle.close)
        cls.addClassCleanup(cls.busy.close)
        load(cls.busy.store, standard_lines(2, 50))

    def url(self, fabric, trigger):
        path = urllib.parse.urlsplit(trigger["metadata"]["url"]).path
        return f"http://127.0.0.1:{fabric.api_port}{path}"

    def values(self, *fabrics):
        return {name: keda.aggregate(trigger["metadata"]["aggregationType"],
                                     [self.url(fabric, trigger) for fabric in fabrics],
                                     trigger["metadata"]["valueLocation"])
                for name, trigger in self.triggers.items()}

    def test_the_triggers_are_the_scalers(self):
        self.assertEqual(set(self.triggers), {"inflight", "oldest-age"})
        known = {"url", "valueLocation", "targetValue", "activationTargetValue", "format",
                 "unsafeSsl", "aggregateFromKubeServiceEndpoints", "aggregationType", "timeout"}
        for trigger in self.triggers.values():
            metadata = trigger["metadata"]
            self.assertEqual(trigger["type"], "metrics-api")
            self.assertEqual(set(metadata) - known, set())
            self.assertTrue(all(isinstance(value, str) for value in metadata.values()))
            self.assertEqual(metadata["aggregateFromKubeServiceEndpoints"], "true")
            self.assertGreater(float(metadata["targetValue"]), 0)
            # The host is SERVICE.NAMESPACE..., from which KEDA takes whose endpoints to ask.
            host = urllib.parse.urlsplit(metadata["url"]).hostname.split(".")
            self.assertEqual(host[:2], ["promfabric-api", "promfabric"])

    def test_idle_is_zero_everywhere(self):
        self.assertEqual(self.values(self.idle), {"inflight": 0, "oldest-age": 0})
        body = self.idle.get("/monitor/scaling")[2]
        for trigger in self.triggers.values():  # numbers, not strings that look like them
            found, value = keda.gjson(body, trigger["metadata"]["valueLocation"])
            self.assertTrue(found and type(value) in (int, float), value)

    def test_no_key_is_there_twice(self):
        def unique(pairs):
            self.assertEqual(len({key for key, _ in pairs}), len(pairs))
            return dict(pairs)
        json.loads(self.idle.get("/monitor/scaling")[2], object_pairs_hook=unique)

    def test_waiting_queries_wake_the_first_worker(self):
        """Load without a worker shows, grows with the queries, and is gone when they are done."""
        threads = [threading.Thread(target=self.busy.query, args=("up", START + 60))
                   for _ in range(6)]
        threads[0].start()
        wait_for("one query", lambda: self.values(self.busy)["inflight"] > 0)
        one = self.values(self.busy)["inflight"]
        for thread in threads[1:]:
            thread.start()
        wait_for("all queries", lambda: self.values(self.busy)["inflight"] == 6 * one)
        wait_for("age", lambda: self.values(self.busy)["oldest-age"] > 1)
        # Over both endpoints: a sum of what is in flight, and the largest age.
        both = self.values(self.idle, self.busy)
        self.assertEqual(both["inflight"], 6 * one)
        self.assertGreater(both["oldest-age"], 1)
        self.assertEqual(keda.replicas(both["inflight"], self.triggers["inflight"], 0),
                         -(-6 * one // float(self.triggers["inflight"]["metadata"]["targetValue"])))
        self.assertEqual(self.values(self.idle)["inflight"], 0)
        # A drained API is left out; with none that answers KEDA has nothing but its fallback.
        dead = f"http://127.0.0.1:{free_port()}/monitor/scaling"
        path = self.triggers["inflight"]["metadata"]["valueLocation"]
        url = self.url(self.busy, self.triggers["inflight"])
        self.assertEqual(keda.aggregate("sum", [dead, url], path), 6 * one)
        with self.assertRaises(keda.ScalerError):
            keda.aggregate("sum", [dead], path)
        self.busy.start_worker(0)
        for thread in threads:
            thread.join(30)
        wait_for("nothing in flight",
                 lambda: self.values(self.busy) == {"inflight": 0, "oldest-age": 0})

    def test_keys_do_not_shut_out_the_scaler(self):
        keys = os.path.join(self.idle.folder, "keys")
        with open(keys, "w") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write("k default\n")
        fabric = Fabric(1, (f"--api-keys={keys}",), start_workers=False)
        self.addCleanup(fabric.close)
        self.assertEqual(fabric.get("/api/v1/labels")[0], 401)
        self.assertEqual(self.values(fabric), {"inflight": 0, "oldest-age": 0})


    def test_background_work_wakes_nobody_unless_it_is_asked_to(self):
        """Segments that could be merged are told apart; only a flag makes them load."""
        compact = ("--compact", "--compact-interval=1s", "--compact-settle=0s", "--catalog-refresh=1s")
        for flags in (compact, (*compact, "--compact-wakes-workers")):
            fabric = Fabric(1, flags, start_workers=False)
            self.addCleanup(fabric.close)
            load(fabric.store, standard_lines(2, 50), window=300)
            wait_for("it to be seen", lambda: fabric.data("/api/v1/compaction")["behind_segments"] > 0, 60)
            if len(flags) == len(compact):
                wait_for("a look", lambda: fabric.data("/api/v1/compaction")["outcome"] == "no_workers", 60)
                self.assertEqual(self.values(fabric), {"inflight": 0, "oldest-age": 0})
            else:
                wait_for("jobs", lambda: fabric.scaling()["background"]["queued"] > 0, 60)
                self.assertGreater(keda.replicas(self.values(fabric)["inflight"], self.triggers["inflight"], 0), 0)


class Objects(unittest.TestCase):
    def test_fallback_in_every_overlay(self):
        for overlay in ("local", "s3", "scale-to-zero"):
            spec = scaled_object(overlay)["spec"]
            self.assertGreaterEqual(spec["fallback"]["replicas"], 1, overlay)
            self.assertGreaterEqual(spec["fallback"]["failureThreshold"], 1)
            self.assertLessEqual(spec["fallback"]["replicas"], spec["maxReplicaCount"])

    def test_scale_to_zero_waits_long_enough_for_a_worker(self):
        self.assertGreater(scaled_object("s3")["spec"]["minReplicaCount"], 0)
        spec = scaled_object("scale-to-zero")["spec"]
        self.assertEqual(spec["minReplicaCount"], 0)
        with open(f"{os.environ['PROMFABRIC_MANIFESTS']}/scale-to-zero.json") as file:
            config = next(o for o in json.load(file) if o["kind"] == "ConfigMap" and
                          o["metadata"]["name"] == "promfabric-api")["data"]
        wait = int(config["PROMFABRIC_WORKER_WAIT"].rstrip("s"))
        # A poll, and a node and a pod that have to start.
        self.assertGreaterEqual(wait, spec["pollingInterval"] + 60)


if __name__ == "__main__":
    unittest.main()
