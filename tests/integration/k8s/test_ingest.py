"""test_ingest.py - the component of ingest nodes against the program: its shape, and three nodes, an API and a
worker that run as it says, under the names that pods have, while an update restarts one node after another."""
import http.client
import json
import random
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest

from harness import BINARY, Process, free_port, wait_for
from pods import DOMAIN, PEERS, PodsTest, pods_of
from test_manifests import TOP, WIND_DOWN_SECONDS, container_of, environment, find, flags_of, objects, pod_of, seconds

LIVE = "live"


def pods():
    return pods_of(LIVE, "ingest")


class Shape(unittest.TestCase):
    def test_every_variable_is_a_flag(self):
        for role in ("api", "worker", "ingest"):
            known = {"PROMFABRIC_" + flag.upper().replace("-", "_") for flag in flags_of(role)}
            used = {name for name in environment(LIVE, role) if name.startswith("PROMFABRIC_")}
            self.assertEqual(used - known, set(), role)
        self.assertEqual(container_of(LIVE, "ingest")["args"], ["ingest"])

    def test_everybody_knows_every_node(self):
        hosts = [f"{pod}.{DOMAIN}" for pod in pods()]
        peers = environment(LIVE, "ingest")["PROMFABRIC_PEER"].split(",")
        self.assertEqual(peers, [f"{pod}={host}:8084" for pod, host in zip(pods(), hosts)])
        self.assertEqual(environment(LIVE, "api")["PROMFABRIC_INGEST"].split(","), [f"{host}:8083" for host in hosts])
        container, = find(LIVE, "Job", "promfabric-ingest-form")["spec"]["template"]["spec"]["containers"]
        self.assertEqual([a for a in container["args"] if a.startswith("https:")], [f"https://{host}:8083" for host in hosts])
        self.assertLessEqual({a[2:].split("=")[0] for a in container["args"] if a.startswith("--")}, set(flags_of("queue")))
        for pod in pods():
            self.assertEqual(environment(LIVE, "ingest", pod)["PROMFABRIC_ADVERTISE_URL"], f"https://{pod}.{DOMAIN}:8083")

    def test_what_goes_at_once_leaves_a_majority(self):
        count = len(pods())
        budget = find(LIVE, "PodDisruptionBudget", "promfabric-ingest")["spec"]
        self.assertGreaterEqual(count - budget["maxUnavailable"], count // 2 + 1)
        affinity, = pod_of(LIVE, "ingest")["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        self.assertEqual(affinity["topologyKey"], "kubernetes.io/hostname")
        labels = find(LIVE, "StatefulSet", "promfabric-ingest")["spec"]["template"]["metadata"]["labels"]
        for selector in (affinity["labelSelector"]["matchLabels"], budget["selector"]["matchLabels"],
                         find(LIVE, "Service", "promfabric-ingest")["spec"]["selector"],
                         find(LIVE, "Service", PEERS)["spec"]["selector"]):
            self.assertLessEqual(selector.items(), labels.items())

    def test_a_voter_that_catches_up_is_reached_and_not_killed(self):
        container = container_of(LIVE, "ingest")
        self.assertEqual(container["livenessProbe"]["httpGet"]["path"], "/livez")
        startup = container["startupProbe"]
        self.assertGreaterEqual(startup["periodSeconds"] * startup["failureThreshold"], 300)
        self.assertEqual(container["readinessProbe"]["httpGet"]["path"], "/readyz")
        self.assertTrue(find(LIVE, "Service", PEERS)["spec"]["publishNotReadyAddresses"])
        self.assertEqual(find(LIVE, "Service", PEERS)["spec"]["clusterIP"], "None")
        self.assertNotIn("publishNotReadyAddresses", find(LIVE, "Service", "promfabric-ingest")["spec"])

    def test_nodes_are_given_the_time_to_hand_over(self):
        pause = int(container_of(LIVE, "ingest")["lifecycle"]["preStop"]["exec"]["command"][1])
        drain = seconds(environment(LIVE, "ingest")["PROMFABRIC_DRAIN_TIMEOUT"])
        self.assertGreaterEqual(pod_of(LIVE, "ingest")["terminationGracePeriodSeconds"], pause + drain + WIND_DOWN_SECONDS)
        self.assertGreater(find(LIVE, "StatefulSet", "promfabric-ingest")["spec"]["minReadySeconds"], 0)

    def test_data_are_on_a_volume_that_stays_and_fit_on_it(self):
        spec, env = find(LIVE, "StatefulSet", "promfabric-ingest")["spec"], environment(LIVE, "ingest")
        claim, = spec["volumeClaimTemplates"]
        mount, = [m for m in container_of(LIVE, "ingest")["volumeMounts"] if env["PROMFABRIC_DATA"].startswith(m["mountPath"])]
        self.assertEqual(mount["name"], claim["metadata"]["name"])
        size = int(claim["spec"]["resources"]["requests"]["storage"].removesuffix("Gi"))
        self.assertLess(int(env["PROMFABRIC_DATA_BYTES"].removesuffix("GiB")), size)
        self.assertEqual(set(spec["persistentVolumeClaimRetentionPolicy"].values()), {"Retain"})

    def test_what_a_node_may_take_fits_the_memory_of_the_pod(self):
        def mib(text):
            number, unit = re.fullmatch(r"(\d+)(Mi|Gi)B?", text).groups()
            return int(number) * {"Mi": 1, "Gi": 1024}[unit]
        env = environment(LIVE, "ingest")
        # Twice its heads: beyond that samples are refused. Requests are counted whole but for a megabyte each.
        used = 2 * mib(env["PROMFABRIC_HEAD_BYTES"]) + mib(env["PROMFABRIC_WRITE_MEMORY"]) + mib(env["PROMFABRIC_HEAD_READ_MEMORY"])
        self.assertLess(used, mib(container_of(LIVE, "ingest")["resources"]["limits"]["memory"]))

    def test_nobody_is_root_and_nothing_but_data_is_writable(self):
        form = find(LIVE, "Job", "promfabric-ingest-form")["spec"]["template"]["spec"]
        for pod in (pod_of(LIVE, "ingest"), form):
            container, = pod["containers"]
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])
            self.assertFalse(pod["automountServiceAccountToken"])
            self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
            self.assertEqual(container["securityContext"]["capabilities"]["drop"], ["ALL"])
            self.assertTrue(all(m.get("readOnly") for m in container["volumeMounts"] if m["name"] != "data"))

    def test_policies_name_who_may_talk_to_nodes(self):
        policies = {o["metadata"]["name"]: o["spec"] for o in objects(LIVE) if o["kind"] == "NetworkPolicy"}
        text = json.dumps(policies["promfabric-ingest"]["ingress"])
        for who in ("promfabric.io/client", "monitoring", "promfabric-api", "promfabric-worker", "promfabric-ingest-form"):
            self.assertIn(who, text)
        self.assertTrue(all("from" in rule for rule in policies["promfabric-ingest"]["ingress"]))
        peer = [rule for rule in policies["promfabric-ingest"]["ingress"] if {"port": "peer"} in rule["ports"]]
        self.assertEqual([p["podSelector"]["matchLabels"] for rule in peer for p in rule["from"]],
                         [{"app.kubernetes.io/name": "promfabric-ingest"}])
        for role in ("api", "worker", "ingest-form"):
            self.assertIn('"app.kubernetes.io/name": "promfabric-ingest"}', json.dumps(policies[f"promfabric-{role}"]["egress"]))
        self.assertIn("promfabric-ingest", policies["promfabric-store"]["podSelector"]["matchExpressions"][0]["values"])
        self.assertIn("promfabric-ingest", json.dumps(find(LIVE, "ServiceMonitor")["spec"]["selector"]))

    def test_certificates_have_the_names_that_are_asked_for(self):
        names, = [o["spec"]["dnsNames"] for o in objects("cert-manager")
                  if o["kind"] == "Certificate" and o["spec"]["secretName"] == "promfabric-ingest-tls"]
        self.assertIn(environment(LIVE, "ingest")["PROMFABRIC_PEER_TLS_NAME"], names)
        self.assertIn(f"*.{DOMAIN}", names)


    def test_the_job_that_rescues_has_the_folder_and_the_name_of_a_pod(self):
        pod = find("rescue", "Job")["spec"]["template"]["spec"]
        container, = pod["containers"]
        env, claim = environment(LIVE, "ingest"), find(LIVE, "StatefulSet", "promfabric-ingest")["spec"]["volumeClaimTemplates"][0]
        self.assertEqual(container["args"], ["queue", "rescue", env["PROMFABRIC_DATA"], f"--as={pods()[0]}"])
        self.assertLessEqual({"as", "yes"}, set(flags_of("queue")))
        mount, = container["volumeMounts"]
        self.assertTrue(env["PROMFABRIC_DATA"].startswith(mount["mountPath"] + "/"))
        self.assertEqual(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], f'{claim["metadata"]["name"]}-{pods()[0]}')
        # The folder stays the node's: the same user, and nothing else is writable.
        for key in ("runAsUser", "runAsGroup", "fsGroup", "runAsNonRoot"):
            self.assertEqual(pod["securityContext"][key], pod_of(LIVE, "ingest")["securityContext"][key])
        self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
        self.assertFalse(pod["automountServiceAccountToken"])


class Senders:
    """What senders do: connections that stay, to any node that the service names, and every write until it is
    acknowledged."""

    def __init__(self, running, count, metric="m"):
        self.running, self.metric, self.stopping = running, metric, threading.Event()
        self.written, self.failed, self.retries, self.lock = {}, [], [], threading.Lock()
        self.threads = [threading.Thread(target=self.send, args=(i,)) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def send(self, index):
        connection, number = None, 0
        while not self.stopping.is_set():
            number += 1
            body = f'{self.metric}{{sender="{index}"}} {number} {int(time.time() * 1000)}\n'
            deadline, why = time.monotonic() + 30, None
            while True:
                try:
                    connection = connection or self.running.connect(random.choice(sorted(self.running.service)))
                    connection.request("POST", "/api/v1/import/prometheus", body, {
                        "Authorization": f"Bearer {self.running.keys['default']}", "Content-Type": "text/plain"})
                    answer = connection.getresponse()
                    why = f"{answer.status} {answer.read()[:200]}"
                    if answer.will_close:
                        connection = connection.close()
                    if answer.status in (200, 204):
                        break
                    if answer.status < 500 and answer.status != 429:
                        deadline = 0
                except (OSError, http.client.HTTPException, IndexError) as error:
                    connection, why = connection and connection.close(), repr(error)
                if time.monotonic() > deadline:
                    with self.lock:
                        self.failed.append(why)
                    return
                with self.lock:
                    self.retries.append(why)
                time.sleep(0.1)
            with self.lock:
                self.written[index] = number
            time.sleep(0.02)
        if connection:
            connection.close()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)


class Running(PodsTest):
    """Three nodes of the overlay live, and senders."""
    overlay = LIVE

    def run_rescue(self, *more):
        """The Job that rescues the volume of the first pod."""
        container, = find("rescue", "Job")["spec"]["template"]["spec"]["containers"]
        # The processes of this test are on one machine: below /data each has a folder of its own name.
        args = [a.replace(environment(LIVE, "ingest")["PROMFABRIC_DATA"], f"/data/{pods()[0]}") for a in container["args"]]
        return subprocess.run([BINARY, *self.mounted("ingest", args), *more], capture_output=True, text=True, timeout=60)

    def lose(self, pod):
        """The node's machine and its volume."""
        self.service.discard(pod)
        self.processes[pod].kill()
        shutil.rmtree(f"{self.folder}/data-{pod}")

    def wait_writes(self, senders, more=50):
        before = sum(senders.written.values())
        wait_for("writes to go on", lambda: sum(senders.written.values()) > before + more or senders.failed, 60)

    def start_readers(self):
        """An API and a worker of the same overlay."""
        ports = {name: free_port() for name in ("api", "http", "control")}
        common = {"PROMFABRIC_STORE": f"{self.folder}/store", "PROMFABRIC_DISCOVERY": "static"}
        for role, more in (("worker", {"PROMFABRIC_HTTP_LISTEN": f"127.0.0.1:{ports['http']}",
                                       "PROMFABRIC_CONTROL_LISTEN": f"127.0.0.1:{ports['control']}",
                                       "PROMFABRIC_ADVERTISE_URL": f"https://127.0.0.1:{ports['http']}"}),
                           ("api", {"PROMFABRIC_HTTP_LISTEN": f"127.0.0.1:{ports['api']}", **common,
                                    "PROMFABRIC_WORKER": f"127.0.0.1:{ports['control']}"})):
            env = self.mounted(role, environment(LIVE, role, PROMFABRIC_SPOOL=f"{self.folder}/spool-{role}",
                                                 **{"PROMFABRIC_STORE": common["PROMFABRIC_STORE"], **more}))
            process = Process(self.folder, role, [role], env, wrapper=self.in_pod())
            self.addCleanup(process.kill)
        return ports["api"]

    def counts(self, port, metric="m"):
        try:
            status, answer = self.ask(port, f'sum by (sender) (count_over_time({metric}[15m]))')
        except (OSError, ValueError, http.client.HTTPException):
            return None
        return {int(s["metric"]["sender"]): int(s["value"][1]) for s in answer["data"]["result"]} if status == 200 else None

    def test_forming_again_changes_nothing(self):
        done = self.run_form()
        self.assertEqual((done.returncode, done.stdout), (0, "3 nodes vote\n"), done.stderr)

    def test_an_update_of_all_nodes_fails_no_write_and_loses_no_sample(self):
        """One at a time, the last first, with the pauses of the manifests: the service forgets the pod, the pause
        before the signal, the drain, the new process, readiness, and how long it must last."""
        spec = find(LIVE, "StatefulSet", "promfabric-ingest")["spec"]
        pause = int(container_of(LIVE, "ingest")["lifecycle"]["preStop"]["exec"]["command"][1])
        senders = Senders(self, 4)
        self.addCleanup(senders.stop)
        longest = 0
        for pod in reversed(pods()):
            self.service.discard(pod)
            time.sleep(pause)
            begun = time.monotonic()
            self.assertEqual(self.processes[pod].stop(pod_of(LIVE, "ingest")["terminationGracePeriodSeconds"] - pause), 0)
            longest = max(longest, time.monotonic() - begun)
            self.start_node(pod)
            self.await_ready(pod)
            time.sleep(spec["minReadySeconds"])
        senders.stop()
        self.assertEqual(senders.failed, [])
        # A node that stops says so once and closes: the next try goes to another one.
        self.assertLessEqual(len([why for why in senders.retries if "stopping" in why]), len(senders.threads) * len(pods()))
        print(f"{sum(senders.written.values())} writes, {len(senders.retries)} tried again "
              f"({sorted({why[:60] for why in senders.retries})}); the longest drain took {longest:.1f} s", file=sys.stderr)
        port = self.start_readers()
        wait_for("every sample", lambda: self.counts(port) == senders.written, 60)

    def test_a_node_whose_volume_is_lost_is_replaced_while_others_are_written_to(self):
        """As the manual says: a new pod with an empty volume, then the Job with --replace."""
        senders = Senders(self, 2, "replaced")
        self.addCleanup(senders.stop)
        self.wait_writes(senders)
        pod = pods()[1]
        self.lose(pod)
        self.start_node(pod)
        wait_for("it to live", lambda: self.status(pod, "/livez") == 200, 60)
        self.assertEqual(self.status(pod, "/readyz"), 503)  # it is in no cluster: no sender comes here
        done = self.run_form("--replace", pod)
        self.assertEqual((done.returncode, done.stdout), (0, "3 nodes vote\n"), done.stderr)
        self.await_ready(pod)
        self.wait_writes(senders)
        senders.stop()
        self.assertEqual(senders.failed, [])
        port = self.start_readers()
        wait_for("every sample", lambda: self.counts(port, "replaced") == senders.written, 60)

    def test_when_two_volumes_are_lost_the_third_goes_on(self):
        """As the manual says: no pod, the Job that rescues, the pods with empty claims, the Job that forms."""
        senders = Senders(self, 2, "rescued")
        self.addCleanup(senders.stop)
        self.wait_writes(senders)
        senders.stop()
        time.sleep(1)  # what was acknowledged by others is here, too: within a heartbeat
        for pod in pods():
            self.service.discard(pod)
            self.processes[pod].kill()
        for pod in pods()[1:]:
            self.lose(pod)
        looked = self.run_rescue()
        self.assertEqual((looked.returncode, looked.stderr), (0, ""))
        self.assertIn("nothing was changed", looked.stdout)
        done = self.run_rescue("--yes")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for pod in pods():
            self.start_node(pod)
        done = self.run_form()
        self.assertEqual((done.returncode, done.stdout), (0, "3 nodes vote\n"), done.stderr)
        for pod in pods():
            self.await_ready(pod)
        more = Senders(self, 2, "later")
        self.addCleanup(more.stop)
        self.wait_writes(more)
        more.stop()
        self.assertEqual(senders.failed + more.failed, [])
        port = self.start_readers()
        for metric, sent in (("rescued", senders), ("later", more)):
            wait_for("every sample", lambda metric=metric, sent=sent: self.counts(port, metric) == sent.written, 60)

    def test_alerts_and_dashboard_use_metrics_that_are_there(self):
        connection = self.connect(pods()[0])
        self.addCleanup(connection.close)
        connection.request("GET", "/metrics")
        families = set()
        for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", connection.getresponse().read().decode(), re.M):
            families |= {name + s for s in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
        for text in (json.dumps(find(LIVE, "PrometheusRule")), (TOP / "k8s/dashboard.json").read_text()):
            used = set(re.findall(r"\bpromfabric_ingest_\w+", text))
            self.assertGreater(len(used), 5)
            self.assertEqual(used - families, set())


if __name__ == "__main__":
    unittest.main()
