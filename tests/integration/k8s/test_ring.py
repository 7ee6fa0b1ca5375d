"""test_ring.py - the overlay without object storage against the program: its shape, and three ingest nodes, three keepers and an API
that run as it says, under the names that pods have, while one keeper is away."""
import contextlib
import json
import os
import pathlib
import re
import time
import unittest

from harness import Process, free_port, wait_for
from pods import DOMAIN, PodsTest, pods_of
from test_manifests import container_of, environment, find, flags_of, objects, pod_of, setting

RING = "ring"
WORKERS = "promfabric-worker.promfabric.svc"
COPIES = 3


def form():
    container, = find(RING, "Job", "promfabric-ring-form")["spec"]["template"]["spec"]["containers"]
    return container["args"]


def gib(text):
    return int(re.fullmatch(r"(\d+)Gi[B]?", text)[1])


class Shape(unittest.TestCase):
    def test_every_variable_is_a_flag(self):
        for role in ("api", "worker", "ingest"):
            known = {"PROMFABRIC_" + flag.upper().replace("-", "_") for flag in flags_of(role)}
            used = {name for name in environment(RING, role) if name.startswith("PROMFABRIC_")}
            self.assertEqual(used - known, set(), role)
            self.assertEqual(container_of(RING, role)["args"], [role])
        self.assertEqual(form()[:2], ["nodes", "form"])
        self.assertLessEqual({a[2:].split("=")[0] for a in form() if a.startswith("--")}, set(flags_of("nodes")))

    def test_there_is_no_bucket_and_nobody_takes_keepers_away(self):
        kinds = {o["kind"] for o in objects(RING)}
        self.assertNotIn("ScaledObject", kinds)
        self.assertEqual(find(RING, "StatefulSet", "promfabric-worker")["spec"]["replicas"], COPIES)
        self.assertEqual(environment(RING, "api")["PROMFABRIC_COMPACT"], "true")

    def test_everybody_has_the_same_store_and_shows_a_certificate(self):
        hosts = ",".join(f"{pod}.{DOMAIN}:8083" for pod in pods_of(RING, "ingest"))
        for role in ("api", "worker", "ingest"):
            store, _, params = environment(RING, role)["PROMFABRIC_STORE"].partition("?")
            self.assertEqual(store, f"ring://{hosts}")
            params = dict(param.split("=") for param in params.split("&"))
            self.assertEqual(set(params), {"key", "ca", "cert", "cert-key"})
            mounts = {m["mountPath"]: m for m in container_of(RING, role)["volumeMounts"]}
            for file in params.values():
                self.assertTrue(mounts[os.path.dirname(file)]["readOnly"], (role, file))

    def test_the_ring_is_made_of_all_keepers_by_their_names(self):
        nodes = [a for a in form()[2:] if not a.startswith("--")]
        port = environment(RING, "worker")["PROMFABRIC_HTTP_LISTEN"].split(":")[1]
        self.assertEqual(nodes, [f"{pod}=https://{pod}.{WORKERS}:{port}" for pod in pods_of(RING, "worker")])
        for pod in pods_of(RING, "worker"):
            self.assertEqual(environment(RING, "worker", pod)["PROMFABRIC_WORKER_ID"], pod)
        self.assertIn(f"--copies={COPIES}", form())
        service = find(RING, "Service", find(RING, "StatefulSet", "promfabric-worker")["spec"]["serviceName"])["spec"]
        self.assertEqual((service["clusterIP"], service["publishNotReadyAddresses"]), ("None", True))

    def test_what_goes_at_once_leaves_a_majority_of_the_copies(self):
        spec = find(RING, "StatefulSet", "promfabric-worker")["spec"]
        budget = find(RING, "PodDisruptionBudget", "promfabric-worker")["spec"]
        self.assertGreaterEqual(COPIES - budget["maxUnavailable"], COPIES // 2 + 1)
        affinity, = pod_of(RING, "worker")["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        self.assertEqual(affinity["topologyKey"], "kubernetes.io/hostname")
        for selector in (affinity["labelSelector"]["matchLabels"], budget["selector"]["matchLabels"]):
            self.assertLessEqual(selector.items(), spec["template"]["metadata"]["labels"].items())
        # The next one goes when the one before has had time for two looks at what it lacks.
        self.assertGreater(spec["minReadySeconds"], 2 * int(setting(RING, "worker", "keep-mend-every").removesuffix("s")))

    def test_blobs_are_on_a_volume_that_stays(self):
        spec, env = find(RING, "StatefulSet", "promfabric-worker")["spec"], environment(RING, "worker")
        claim, = spec["volumeClaimTemplates"]
        mount, = [m for m in container_of(RING, "worker")["volumeMounts"] if env["PROMFABRIC_KEEP"].startswith(m["mountPath"] + "/")]
        self.assertEqual(mount["name"], claim["metadata"]["name"])
        self.assertEqual(set(spec["persistentVolumeClaimRetentionPolicy"].values()), {"Retain"})
        self.assertLess(gib(env["PROMFABRIC_KEEP_RESERVE"]), gib(claim["spec"]["resources"]["requests"]["storage"]))
        # What waits for keepers lies beside the samples of the ingest node.
        env = environment(RING, "ingest")
        claim, = find(RING, "StatefulSet", "promfabric-ingest")["spec"]["volumeClaimTemplates"]
        waits = int(env["PROMFABRIC_HANDOFF_STORE_MAX_SIZE_MB"]) / 1024
        self.assertLess(gib(env["PROMFABRIC_DATA_BYTES"]) + waits, gib(claim["spec"]["resources"]["requests"]["storage"]))

    def test_keepers_ask_for_a_key_and_for_certificates(self):
        env = environment(RING, "worker")
        for name in ("KEEP_KEYS", "CONTROL_TLS_CLIENT_CA", "HTTP_TLS_CERT", "KEEP_TLS_CERT", "KEEP_TLS_KEY", "INGEST_KEY"):
            self.assertIn("PROMFABRIC_" + name, env)
        env = environment(RING, "ingest")
        for name in ("KEEP_KEY_FILE", "KEEP_CA", "KEEP_TLS_CERT", "KEEP_TLS_KEY"):
            self.assertIn("PROMFABRIC_" + name, env)
        # Certificates of workers are not enough to give work.
        self.assertEqual(environment(RING, "worker")["PROMFABRIC_CONTROL_TLS_CLIENT_NAME"], "promfabric-api")
        certificate, = [o["spec"] for o in objects("cert-manager")
                        if o["kind"] == "Certificate" and o["spec"]["secretName"] == "promfabric-worker-tls"]
        self.assertIn("client auth", certificate["usages"])
        self.assertIn(f"*.{WORKERS}", certificate["dnsNames"])

    def test_policies_name_who_may_talk_to_keepers(self):
        policies = {o["metadata"]["name"]: o["spec"] for o in objects(RING) if o["kind"] == "NetworkPolicy"}
        rules = policies["promfabric-worker"]["ingress"]
        self.assertTrue(all("from" in rule for rule in rules))
        for who, ports in (("promfabric-api", {"http", "control"}), ("promfabric-worker", {"http"}), ("promfabric-ingest", {"http"}),
                           ("monitoring", {"http"})):
            self.assertEqual({p["port"] for rule in rules if f'"{who}"' in json.dumps(rule["from"]) for p in rule["ports"]}, ports, who)
        for who in ("api", "worker", "ingest"):
            self.assertIn('"app.kubernetes.io/name": "promfabric-worker"}', json.dumps(policies[f"promfabric-{who}"]["egress"]), who)
        for who in ("api", "worker", "ring-form"):
            self.assertIn('"app.kubernetes.io/name": "promfabric-ingest"}', json.dumps(policies[f"promfabric-{who}"]["egress"]), who)
            self.assertIn(f'"promfabric-{who}"', json.dumps(policies["promfabric-ingest"]["ingress"]), who)
        self.assertIn("promfabric-ingest", json.dumps(find(RING, "ServiceMonitor")["spec"]["selector"]))


class Running(PodsTest):
    overlay = RING
    domains = {**PodsTest.domains, "worker": WORKERS}

    @classmethod
    def settings(cls):
        return {"PROMFABRIC_SEAL_AGE": "1s"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for pod in pods_of(RING, "worker"):
            cls.start_keeper(pod)
        done = cls.run_form(job="promfabric-ring-form")
        assert done.returncode == 0, done.stderr
        cls.port = free_port()
        env = cls.mounted("api", environment(
            RING, "api", PROMFABRIC_SPOOL=f"{cls.folder}/spool-api", PROMFABRIC_HTTP_LISTEN=f"127.0.0.1:{cls.port}",
            PROMFABRIC_DISCOVERY="static",
            PROMFABRIC_WORKER=",".join(f"{cls.addresses[pod]}:8082" for pod in pods_of(RING, "worker"))))
        cls.addClassCleanup(Process(cls.folder, "api", ["api"], env, wrapper=cls.in_pod()).kill)

    @classmethod
    def start_keeper(cls, pod):
        address = cls.addresses[pod]
        env = cls.mounted("worker", environment(
            RING, "worker", pod, PROMFABRIC_KEEP=f"{cls.folder}/keep-{pod}", PROMFABRIC_KEEP_RESERVE="1MiB",
            PROMFABRIC_SPOOL=f"{cls.folder}/spool-{pod}", PROMFABRIC_HTTP_LISTEN=f"{address}:8081",
            PROMFABRIC_CONTROL_LISTEN=f"{address}:8082", PROMFABRIC_ADVERTISE_URL=f"https://{address}:8081"))
        cls.processes[pod] = Process(cls.folder, pod, ["worker"], env, wrapper=cls.in_pod())
        cls.addClassCleanup(cls.processes[pod].kill)

    def blobs(self, pod):
        root = pathlib.Path(self.folder, f"keep-{pod}", "blobs")
        return {str(f.relative_to(root)).rsplit("~", 1)[0] for f in root.rglob("*.parquet~*")}

    def write(self, metric, value):
        self.now = int(time.time() * 1000)

        def written():
            with contextlib.closing(self.connect(pods_of(RING, "ingest")[0])) as connection:
                connection.request("POST", "/api/v1/import/prometheus", f"{metric} {value} {self.now}\n",
                                   {"Authorization": f"Bearer {self.keys['default']}", "Content-Type": "text/plain"})
                return connection.getresponse().status in (200, 204)
        wait_for(f"{metric} to be written", written, 30)

    def answer(self, metric):
        try:
            status, answer = self.ask(self.port, metric)
        except (OSError, ValueError):
            return None
        return [row["value"][1] for row in answer["data"]["result"]] if status == 200 else None

    def same(self, pods, above=0):
        held = [self.blobs(pod) for pod in pods]
        return len(held[0]) > above and all(h == held[0] for h in held)

    def test_samples_are_segments_on_all_keepers_and_on_the_others_while_one_is_away(self):
        keepers = pods_of(RING, "worker")
        done = self.run_form(job="promfabric-ring-form")
        self.assertEqual((done.returncode, done.stdout), (0, "3 storage nodes are on the ring\n"), done.stderr)
        self.write("one", 1)
        wait_for("three copies", lambda: self.same(keepers), 90)
        wait_for("an answer", lambda: self.answer("one") == ["1"], 60)
        before = len(self.blobs(keepers[0]))
        self.processes[keepers[0]].kill()
        self.write("two", 2)
        wait_for("two copies", lambda: self.same(keepers[1:], before), 90)
        wait_for("an answer", lambda: self.answer("two") == ["2"] and self.answer("one") == ["1"], 60)
        self.start_keeper(keepers[0])
        wait_for("what it missed", lambda: self.same(keepers, before), 90)


if __name__ == "__main__":
    unittest.main()
