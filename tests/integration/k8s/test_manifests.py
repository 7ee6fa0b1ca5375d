"""test_manifests.py - the manifests against the program they start.

Every variable is a flag, the processes start with what the manifests say and answer a query, probes
and ports are real, pods are given the time they need to end, and alerts and dashboard ask for metrics
that are there."""
import base64
import functools
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import unittest

from cloud import Kubernetes, slice_of
from harness import BINARY, START, Process, free_port, load, standard_lines, wait_for

TOP = pathlib.Path(__file__).resolve().parents[3]
OVERLAYS = ("local", "s3", "scale-to-zero", "cert-manager")
ROLES = {"api": ("Deployment", "promfabric-api"), "worker": ("StatefulSet", "promfabric-worker")}
SOME_OVERLAYS = {"ingest": ("StatefulSet", "promfabric-ingest")}  # test_ingest.py
# What a process may take on top of its drain: canceled tasks come back (5 s), streams close (2 s).
WIND_DOWN_SECONDS = 10


@functools.cache
def objects(overlay):
    with open(f"{os.environ['PROMFABRIC_MANIFESTS']}/{overlay}.json") as file:
        return json.load(file)


def rendered():
    """The names of all overlays and jobs."""
    return sorted(file.stem for file in pathlib.Path(os.environ["PROMFABRIC_MANIFESTS"]).glob("*.json"))


def find(overlay, kind, name=None):
    found = [o for o in objects(overlay) if o["kind"] == kind and
             name in (None, o["metadata"]["name"])]
    assert len(found) == 1, f"{overlay}: {len(found)} objects {kind}/{name}"
    return found[0]


def pod_of(overlay, role):
    return find(overlay, *{**ROLES, **SOME_OVERLAYS}[role])["spec"]["template"]["spec"]


def container_of(overlay, role):
    container, = pod_of(overlay, role)["containers"]
    return container


@functools.cache
def flags_of(role):
    """Flag -> default (None if there is none), as --help tells."""
    text = subprocess.run([BINARY, role, "--help"], capture_output=True, text=True,
                          check=True).stdout
    return {match[1]: (re.search(r"\(default (\S+)\)$", match[2]) or [None, None])[1]
            for match in re.finditer(r"^  --([a-z-]+)(.*)$", text, re.M) if match[1] != "help"}


def environment(overlay, role, pod=None, **more):
    """What the container's process sees in this pod: later sources win, as Kubernetes has it."""
    seen = {}
    container = container_of(overlay, role)
    for source in container.get("envFrom", []):
        if "configMapRef" in source:
            seen.update(find(overlay, "ConfigMap", source["configMapRef"]["name"])["data"])
    fields = {"metadata.name": pod or f"promfabric-{role}-0", "status.podIP": "127.0.0.1"}
    for variable in container.get("env", []):
        value = variable.get("value")
        if value is None:
            value = fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        seen[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda m: seen[m[1]], value)
    return {**seen, **more}


def setting(overlay, role, flag):
    """What the manifests say, or the flag's default."""
    return environment(overlay, role).get("PROMFABRIC_" + flag.upper().replace("-", "_")) or \
        flags_of(role)[flag]


def seconds(text):
    match = re.fullmatch(r"(\d+)(ms|s|m|h)", text)
    return int(match[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[match[2]]


class Flags(unittest.TestCase):
    def test_every_variable_is_a_flag_of_its_role(self):
        for overlay in OVERLAYS:
            for role in ROLES:
                known = {"PROMFABRIC_" + flag.upper().replace("-", "_") for flag in flags_of(role)}
                used = {name for name in environment(overlay, role)
                        if name.startswith("PROMFABRIC_")}
                self.assertEqual(used - known, set(), (overlay, role))
                self.assertGreater(len(used), 5)

    def test_arguments_are_the_role_alone(self):
        for overlay in OVERLAYS:
            for role in ROLES:
                self.assertEqual(container_of(overlay, role)["args"], [role])


class Components(unittest.TestCase):
    def test_without_operators_nothing_needs_one(self):
        """The overlay for kind: what is built into Kubernetes, and replicas, since nobody else says how many."""
        groups = {o["apiVersion"].split("/")[0] for o in objects("kind")}
        self.assertLessEqual(groups, {"v1", "apps", "batch", "policy", "networking.k8s.io", "rbac.authorization.k8s.io"})
        self.assertEqual(find("kind", "StatefulSet")["spec"]["replicas"], 1)
        for overlay in OVERLAYS:
            self.assertNotIn("replicas", find(overlay, "StatefulSet")["spec"])
            self.assertEqual(find(overlay, "ScaledObject")["metadata"]["namespace"], "promfabric")

    def test_jobs_are_commands_of_the_program(self):
        for overlay, command in (("kind", "demo-data"), ("import", "import")):
            pod = find(overlay, "Job")["spec"]["template"]["spec"]
            container, = pod["containers"]
            self.assertEqual(container["args"][0], command)
            flags = {a[2:] for a in container["args"] if a.startswith("--")}
            self.assertLessEqual(flags, set(flags_of(command)))
            self.assertIn("store", flags_of(command))
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])
            self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
            sources = [s["configMapRef"]["name"] for s in container["envFrom"] if "configMapRef" in s]
            self.assertEqual(sources, ["promfabric-store"])


class Shape(unittest.TestCase):
    def each(self):
        for overlay in OVERLAYS:
            for role in ROLES:
                with self.subTest(overlay=overlay, role=role):
                    yield overlay, role, pod_of(overlay, role), container_of(overlay, role)

    def test_pods_are_given_the_time_to_drain(self):
        """Longer than the pause before the signal, the drain, in which artifacts are fetched, and the
        end of threads and streams."""
        for overlay, role, pod, container in self.each():
            drain = environment(overlay, role).get("PROMFABRIC_DRAIN_TIMEOUT") or \
                flags_of(role)["drain-timeout"]
            command = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}) \
                .get("command", ["sleep", "0"])
            self.assertEqual(command[0], "sleep")
            self.assertGreaterEqual(pod["terminationGracePeriodSeconds"],
                                    int(command[1]) + seconds(drain) + WIND_DOWN_SECONDS)

    def test_the_api_pauses_before_it_refuses(self):
        """Load balancers go on sending for a moment; workers tell their APIs themselves."""
        for overlay, role, _, container in self.each():
            self.assertEqual("lifecycle" in container, role == "api")

    def test_nobody_is_root_and_nothing_is_writable(self):
        """Whatever makes pods, in every overlay and job that is rendered."""
        seen = set()
        for name in rendered():
            for made in objects(name):
                if "template" not in made.get("spec", {}):
                    continue
                pod = made["spec"]["template"]["spec"]
                seen.add(made["kind"])
                with self.subTest(overlay=name, kind=made["kind"], name=made["metadata"]["name"]):
                    self.assertTrue(pod["securityContext"]["runAsNonRoot"])
                    self.assertGreater(pod["securityContext"]["runAsUser"], 0)
                    self.assertEqual(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault")
                    for container in pod["containers"] + pod.get("initContainers", []):
                        security = container["securityContext"]
                        self.assertTrue(security["readOnlyRootFilesystem"])
                        self.assertFalse(security["allowPrivilegeEscalation"])
                        self.assertEqual(security["capabilities"]["drop"], ["ALL"])
        self.assertEqual(seen, {"Deployment", "StatefulSet", "Job"})

    def test_what_is_written_is_a_volume_of_the_pods_own(self):
        for overlay, role, pod, container in self.each():
            spool = environment(overlay, role)["PROMFABRIC_SPOOL"]
            mount, = [m for m in container["volumeMounts"] if m["mountPath"] == spool]
            volume, = [v for v in pod["volumes"] if v["name"] == mount["name"]]
            self.assertIn("emptyDir", volume)

    def test_who_merges_segments_may_write_them(self):
        """An API that compacts keeps its lease in the store, its workers put there what they merged."""
        for overlay in ("local", "kind"):
            self.assertEqual(environment(overlay, "api")["PROMFABRIC_COMPACT"], "true")
            for role in ROLES:
                place = environment(overlay, role)["PROMFABRIC_STORE"]
                mount, = [m for m in container_of(overlay, role)["volumeMounts"] if m["mountPath"] == place]
                volume, = [v for v in pod_of(overlay, role)["volumes"] if v["name"] == mount["name"]]
                self.assertFalse(mount.get("readOnly") or volume["persistentVolumeClaim"].get("readOnly"), (overlay, role))

    def test_the_disk_budget_fits_its_volume(self):
        for overlay, role, pod, _ in self.each():
            volume, = [v for v in pod["volumes"] if v["name"] == "spool"]
            size = int(volume["emptyDir"]["sizeLimit"].removesuffix("Gi"))
            flag = {"api": "spool-bytes", "worker": "disk-budget"}[role]
            budget = setting(overlay, role, flag)
            self.assertLess(int(budget.removesuffix("GiB")), size)

    def test_resources_are_asked_for_and_memory_is_bounded(self):
        for _, _, _, container in self.each():
            self.assertEqual(set(container["resources"]["requests"]), {"cpu", "memory"})
            self.assertIn("memory", container["resources"]["limits"])

    def test_what_works_may_take_fits_the_memory_of_the_pod(self):
        def mib(text):
            number, unit = re.fullmatch(r"(\d+)(Mi|Gi)B?", text).groups()
            return int(number) * {"Mi": 1, "Gi": 1024}[unit]
        for overlay in OVERLAYS:
            def at(flag):
                return setting(overlay, "worker", flag)
            self.assertGreater(int(at("slots")), 0)
            used = int(at("slots")) * 2 * mib(at("work-memory-max")) + \
                mib(at("open-segments-memory")) + mib(at("artifact-memory"))
            limit = container_of(overlay, "worker")["resources"]["limits"]["memory"]
            self.assertLess(used, mib(limit), overlay)

    def test_every_probe_is_there(self):
        for _, role, _, container in self.each():
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                self.assertIn(probe, container)
            # Liveness does not hang on peers, readiness says whether work is taken.
            self.assertEqual(container["livenessProbe"]["httpGet"]["path"], "/livez")
            self.assertEqual(container["readinessProbe"]["httpGet"]["path"], "/readyz", role)

    def test_ports_agree_with_flags_and_services(self):
        for overlay, role, _, container in self.each():
            ports = {p["name"]: p["containerPort"] for p in container["ports"]}
            env = environment(overlay, role)
            self.assertEqual(ports["http"], int(env["PROMFABRIC_HTTP_LISTEN"].split(":")[1]))
            if role == "worker":
                self.assertEqual(ports["control"],
                                 int(env["PROMFABRIC_CONTROL_LISTEN"].split(":")[1]))
                self.assertEqual(env["PROMFABRIC_ADVERTISE_URL"], f"https://127.0.0.1:{ports['http']}")
            service = find(overlay, "Service", ROLES[role][1])["spec"]
            for port in service["ports"]:
                self.assertIn(port["targetPort"], ports)
                self.assertEqual(port["port"], ports[port["targetPort"]])

    def test_everybody_selects_the_pods(self):
        for overlay, role, _, _ in self.each():
            kind, name = ROLES[role]
            labels = find(overlay, kind, name)["spec"]["template"]["metadata"]["labels"]

            def selects(selector):
                return set(selector.items()) <= set(labels.items())
            self.assertTrue(selects(find(overlay, "Service", name)["spec"]["selector"]))
            self.assertTrue(selects(
                find(overlay, "PodDisruptionBudget", name)["spec"]["selector"]["matchLabels"]))
            policy = find(overlay, "NetworkPolicy", name)["spec"]
            self.assertTrue(selects(policy["podSelector"]["matchLabels"]))
            allowed = {port["port"] for rule in policy["ingress"] for port in rule["ports"]}
            self.assertEqual(allowed, {p["name"] for p in container_of(overlay, role)["ports"]})
            rule, = find(overlay, "ServiceMonitor")["spec"]["selector"]["matchExpressions"]
            service_labels = find(overlay, "Service", name)["metadata"]["labels"]
            self.assertIn(service_labels[rule["key"]], rule["values"])

    def test_workers_are_found_through_a_headless_service(self):
        for overlay in OVERLAYS:
            env = environment(overlay, "api")
            self.assertEqual(env["PROMFABRIC_DISCOVERY"], "kubernetes")
            service = find(overlay, "Service", env["PROMFABRIC_KUBERNETES_SERVICE"])["spec"]
            self.assertEqual(service["clusterIP"], "None")
            self.assertTrue(service["publishNotReadyAddresses"])
            self.assertIn(env["PROMFABRIC_KUBERNETES_PORT"], [p["name"] for p in service["ports"]])
            self.assertEqual(find(overlay, "StatefulSet")["spec"]["serviceName"],
                             env["PROMFABRIC_KUBERNETES_SERVICE"])

    def test_the_api_may_read_endpoint_slices_and_no_more(self):
        for overlay in OVERLAYS:
            rule, = find(overlay, "Role")["rules"]
            self.assertEqual((rule["apiGroups"], rule["resources"], sorted(rule["verbs"])),
                             (["discovery.k8s.io"], ["endpointslices"], ["get", "list", "watch"]))
            binding = find(overlay, "RoleBinding")
            self.assertEqual(binding["roleRef"]["name"], find(overlay, "Role")["metadata"]["name"])
            account = find(overlay, "ServiceAccount")["metadata"]
            subject, = binding["subjects"]
            self.assertEqual((subject["name"], subject["namespace"]),
                             (account["name"], account["namespace"]))
            self.assertEqual(pod_of(overlay, "api")["serviceAccountName"], account["name"])
            self.assertFalse(pod_of(overlay, "worker")["automountServiceAccountToken"])


def make_secrets(folder, *args):
    """Run k8s/make-secrets, and put its Secrets where pods would have them: FOLDER/NAME/KEY."""
    subprocess.run([TOP / "k8s/make-secrets", *args], check=True, capture_output=True)
    text = pathlib.Path(args[-1] if args[0] == "--renew" else
                        [a for a in args if not a.startswith("--")][0], "secrets.yaml").read_text()
    for part in text.split("---\n")[1:]:
        name = re.search(r"^  name: (\S+)$", part, re.M)[1]
        os.makedirs(f"{folder}/{name}", exist_ok=True)
        for key, value in re.findall(r"^  (\S+): (\S+)$", part.split("\ndata:\n")[1], re.M):
            path = pathlib.Path(folder, name, key)
            path.with_suffix(".new").write_bytes(base64.b64decode(value))
            path.with_suffix(".new").chmod(0o440)
            path.with_suffix(".new").rename(path)


class Security(unittest.TestCase):
    def test_every_file_of_a_flag_is_mounted_from_a_secret_that_only_the_pod_reads(self):
        for overlay in (*OVERLAYS, "kind", "live", "ring"):
            for role in ROLES:
                pod, container = pod_of(overlay, role), container_of(overlay, role)
                mounts = {m["mountPath"]: m for m in container["volumeMounts"]}
                volumes = {v["name"]: v for v in pod["volumes"]}
                files = [value for name, value in environment(overlay, role).items()
                         if re.search("_TLS_(CA|CLIENT_CA|CERT|KEY)$|_(API|KEEP)_KEYS$", name)]
                ingest = overlay in ("live", "ring")  # its CA
                keeps = 3 * (overlay == "ring" and role == "worker")  # who may ask, and what it shows
                self.assertEqual(len(files), {"api": 6, "worker": 5}[role] + ingest + keeps)
                for file in files:
                    mount = mounts[os.path.dirname(file)]
                    secret = volumes[mount["name"]]["secret"]
                    self.assertTrue(mount["readOnly"])
                    self.assertEqual(secret["defaultMode"], 0o440)
                    self.assertRegex(secret["secretName"], f"^promfabric-({role}-tls|api-keys)$")

    def test_keys_alone_where_others_sign(self):
        with tempfile.TemporaryDirectory(prefix="pf-secrets-") as folder:
            make_secrets(folder, "--keys", f"{folder}/made", "team-a")
            self.assertEqual(sorted(os.listdir(folder)), ["made", "promfabric-api-keys", "promfabric-ingest-key"])
            keys = pathlib.Path(folder, "promfabric-api-keys/keys").read_text()
            self.assertEqual([line.split()[1:] for line in keys.splitlines()],
                             [["*", "operators"], ["*", "fabric"], ["team-a", "team-a"]])
            self.assertFalse(any("key" in name for name in os.listdir(f"{folder}/made") if name != "keys.txt"))

    def test_nothing_speaks_plain_http(self):
        for overlay in (*OVERLAYS, "kind", "live", "ring"):
            for role in ROLES:
                for name, probe in container_of(overlay, role).items():
                    if name.endswith("Probe"):
                        self.assertEqual(probe["httpGet"]["scheme"], "HTTPS")
        for overlay in OVERLAYS:
            for trigger in find(overlay, "ScaledObject")["spec"]["triggers"]:
                self.assertTrue(trigger["metadata"]["url"].startswith("https://"))
            for endpoint in find(overlay, "ServiceMonitor")["spec"]["endpoints"]:
                self.assertEqual(endpoint["scheme"], "https")

    def test_policies_name_who_may_talk_to_whom(self):
        """Every rule of the base names its peers, but for the Kubernetes API, which has an address that
        nobody knows before; nobody may reach a worker but the API and Prometheus."""
        def peers(rules, side):
            return sorted(json.dumps(peer, sort_keys=True) for rule in rules
                          for peer in rule.get(side, [{"anybody": [p["port"] for p in rule["ports"]]}]))
        for overlay in OVERLAYS:
            policies = {o["metadata"]["name"]: o["spec"] for o in objects(overlay)
                        if o["kind"] == "NetworkPolicy"}
            for role in ROLES:
                policy = policies["promfabric-" + role]
                self.assertEqual(policy["policyTypes"], ["Ingress", "Egress"])
                text = " ".join(peers(policy["ingress"], "from"))
                self.assertNotIn("anybody", text)
                self.assertEqual("promfabric.io/client" in text, role == "api")
                anybody = [p for p in peers(policy["egress"], "to") if "anybody" in p]
                self.assertEqual(anybody, {"api": ['{"anybody": [443, 6443]}'], "worker": []}[role])
            self.assertEqual("promfabric-store" in policies, overlay != "local")

    def test_cert_manager_makes_the_secrets_and_names_that_are_asked_for(self):
        certificates = {o["spec"]["secretName"]: o["spec"] for o in objects("cert-manager")
                        if o["kind"] == "Certificate"}
        api, worker = (environment("cert-manager", role) for role in ("api", "worker"))
        self.assertIn(api["PROMFABRIC_CONTROL_TLS_SERVER_NAME"],
                      certificates["promfabric-worker-tls"]["dnsNames"])
        self.assertIn(worker["PROMFABRIC_CONTROL_TLS_CLIENT_NAME"],
                      certificates["promfabric-api-tls"]["dnsNames"])
        self.assertIn("client auth", certificates["promfabric-api-tls"]["usages"])
        for role in ROLES:
            tls, = [v for v in pod_of("cert-manager", role)["volumes"] if v["name"] == "tls"]
            self.assertIn(tls["secret"]["secretName"], certificates)


class Running(unittest.TestCase):
    """One worker and one API with the manifests' own environment, but for where things are on this
    machine; the worker is found through an API server of ours."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="pf-manifests-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        os.makedirs(f"{cls.folder}/store")
        load(f"{cls.folder}/store", standard_lines(2, 50))
        api = environment("s3", "api")
        cls.server = Kubernetes(namespace="promfabric",
                                service=api["PROMFABRIC_KUBERNETES_SERVICE"])
        cls.addClassCleanup(cls.server.close)
        for name, text in (("namespace", "promfabric"), ("token", cls.server.token)):
            pathlib.Path(cls.folder, name).write_text(text)
        make_secrets(cls.folder, f"{cls.folder}/made", "default")
        made = pathlib.Path(cls.folder, "made")
        cls.keys = dict(line.split()[::2] for line in (made / "keys.txt").read_text().splitlines())
        cls.context = ssl.create_default_context(cafile=made / "ca.crt")
        cls.ports = {"api": free_port(), "worker": free_port(), "control": free_port()}
        cls.start("worker", PROMFABRIC_CONTROL_LISTEN=f"127.0.0.1:{cls.ports['control']}",
                  PROMFABRIC_ADVERTISE_URL=f"https://127.0.0.1:{cls.ports['worker']}")
        cls.start("api", PROMFABRIC_KUBERNETES_SERVER=cls.server.url,
                  PROMFABRIC_KUBERNETES_SECRETS=cls.folder)
        cls.server.put(slice_of("w", [("127.0.0.1", {"ready": True, "serving": True})], [
            (api["PROMFABRIC_KUBERNETES_PORT"], cls.ports["control"])]))
        wait_for("a worker", lambda: b'"accepting":1' in cls.get("api", "/monitor/scaling")[1])

    @classmethod
    def start(cls, role, **more):
        mounted = {name: value.replace("/tls/", f"{cls.folder}/promfabric-{role}-tls/")
                   .replace("/keys/", f"{cls.folder}/promfabric-{role}-keys/")
                   for name, value in environment("s3", role).items()
                   if value.startswith(("/tls/", "/keys/"))}
        process = Process(cls.folder, role, [role], environment(
            "s3", role, **mounted, PROMFABRIC_STORE=f"{cls.folder}/store",
            PROMFABRIC_SPOOL=f"{cls.folder}/spool-{role}",
            PROMFABRIC_HTTP_LISTEN=f"127.0.0.1:{cls.ports[role]}", **more))
        cls.addClassCleanup(process.stop)
        wait_for(role, lambda: cls.get(role, "/readyz")[0] == 200)

    @classmethod
    def get(cls, role, path, key=""):
        """Over TLS, with the name that the role's certificate has."""
        connection = http.client.HTTPConnection("127.0.0.1", cls.ports[role], timeout=10)
        try:
            connection.connect()
            connection.sock = cls.context.wrap_socket(connection.sock,
                                                      server_hostname=f"promfabric-{role}")
            connection.request("GET", path, headers={"Authorization": f"Bearer {key}"} if key else {})
            response = connection.getresponse()
            return response.status, response.read()
        except OSError:
            return 0, b""
        finally:
            connection.close()

    def test_a_query_is_answered_to_who_has_a_key(self):
        path = f"/api/v1/query?query=up&time={START + 300}"
        for name in ("default", "operators"):
            status, body = self.get("api", path, self.keys[name])
            self.assertEqual((status, len(json.loads(body)["data"]["result"])), (200, 2))
        self.assertEqual(self.get("api", path)[0], 401)
        self.assertEqual(self.get("api", "/api/v1/workers", self.keys["default"])[0], 403)

    def test_renewed_secrets_are_read_without_a_restart(self):
        def serial():
            with socket.create_connection(("127.0.0.1", self.ports["api"])) as plain, \
                    self.context.wrap_socket(plain, server_hostname="promfabric-api") as tls:
                return tls.getpeercert()["serialNumber"]
        before = serial()
        make_secrets(self.folder, "--renew", f"{self.folder}/made", f"{self.folder}/renewed")
        wait_for("the renewed certificate", lambda: serial() != before)
        self.test_a_query_is_answered_to_who_has_a_key()

    def test_http_probes_answer(self):
        for role in ROLES:
            for name, probe in container_of("s3", role).items():
                if name.endswith("Probe") and "httpGet" in probe:
                    self.assertEqual(self.get(role, probe["httpGet"]["path"])[0], 200, (role, name))

    def families(self):
        text = b"".join(self.get(role, "/metrics")[1] for role in ROLES).decode()
        names = set()
        for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M):
            names |= {name + s for s in ("_bucket", "_sum", "_count")} if kind == "histogram" \
                else {name}
        return names

    def test_alerts_and_dashboard_use_metrics_that_are_there(self):
        families = self.families()
        self.assertGreater(len(families), 50)  # those of ingest nodes: test_ingest.py
        for what, text in (("alerts", json.dumps(find("s3", "PrometheusRule"))),
                           ("dashboard", (TOP / "k8s/dashboard.json").read_text())):
            used = set(re.findall(r"\bpromfabric_(?:api|worker|keeper)_\w+", text))
            self.assertGreater(len(used), 5)
            self.assertEqual(used - families, set(), what)

    def test_every_service_level_has_an_alert_and_a_panel(self):
        levels = {"control stream": "promfabric_api_control_disconnects_total",
                  "queue age": "promfabric_api_work_oldest_age_seconds",
                  "query latency": "promfabric_api_query_duration_seconds_bucket",
                  "errors": "promfabric_api_queries_total"}
        alerts = json.dumps(find("s3", "PrometheusRule"))
        dashboard = (TOP / "k8s/dashboard.json").read_text()
        for level, metric in levels.items():
            self.assertIn(metric, alerts, level)
            self.assertIn(metric, dashboard, level)


EVAL_TIMES = {"PromfabricIngestNodeGone": "80m",  # it compares with an hour ago
              **dict.fromkeys(("PromfabricRepairsWait", "PromfabricKeeperLacks", "PromfabricWorkFarFromData"), "80m")}  # these wait for an hour


class Alerts(unittest.TestCase):
    def promtool(self, *args, **files):
        with tempfile.TemporaryDirectory(prefix="pf-rules-") as folder:
            for name, content in files.items():
                pathlib.Path(folder, name).write_text(json.dumps(content))
            return subprocess.run([os.environ["PROMFABRIC_PROMTOOL"], *args], cwd=folder,
                                  capture_output=True, text=True, timeout=60)

    def test_rules_are_rules(self):
        groups = {"groups": find("s3", "PrometheusRule")["spec"]["groups"]}
        run = self.promtool("check", "rules", "rules", rules=groups)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        groups["groups"][0]["rules"][0]["expr"] = "sum(rate(x[5m])"
        run = self.promtool("check", "rules", "rules", rules=groups)
        self.assertNotEqual(run.returncode, 0)

    def test_each_alert_fires_when_it_should_and_not_before(self):
        """A quiet cluster fires nothing; one series per alert gone wrong fires that alert."""
        rules = find("s3", "PrometheusRule")["spec"]["groups"][0]["rules"]
        quiet = {'promfabric_api_queries_total{outcome="ok"}': "0+600x60",
                 'promfabric_api_queries_total{outcome="timeout"}': "0x60",
                 'promfabric_api_queries_total{outcome="unsupported"}': "0+60x60",
                 'promfabric_api_queries_total{outcome="store"}': "0x60",
                 'promfabric_api_query_duration_seconds_bucket{le="0.1"}': "0+600x60",
                 'promfabric_api_query_duration_seconds_bucket{le="10"}': "0+600x60",
                 'promfabric_api_query_duration_seconds_bucket{le="+Inf"}': "0+600x60",
                 'promfabric_api_work_oldest_age_seconds': "1x60",
                 'promfabric_api_workers{state="accepting"}': "3x60",
                 'promfabric_api_work_queued': "2x60",
                 'promfabric_api_control_disconnects_total': "0+1x60",
                 'promfabric_api_artifact_fetch_failures_total{reason="checksum"}': "0x60",
                 'promfabric_api_segments_quarantined': "0x60",
                 'promfabric_api_catalog_refresh_errors_total': "0x60",
                 'promfabric_api_retention_behind_seconds{pod="a"}': "600x60",
                 'promfabric_api_retention_behind_seconds{pod="b"}': "90000x30 600x30",
                 'promfabric_api_retention_runs_total{outcome="clocks"}': "0x60",
                 'promfabric_api_compaction_behind_seconds{pod="a"}': "600x60",
                 'promfabric_api_compaction_behind_seconds{pod="b"}': "90000x30 600x30",
                 'promfabric_api_compaction_damaged_segments{pod="a"}': "0x60",
                 'promfabric_api_tenant_settings_stale{pod="w"}': "0x60",
                 'promfabric_ingest_limited_samples_total{limit="series"}': "7x60",
                 'promfabric_worker_no_space_total{pod="w"}': "0x60",
                 'promfabric_ingest_queues_leaderless{pod="i"}': "0x60",
                 'promfabric_ingest_http_requests_total{status="2xx"}': "0+600x60",
                 'promfabric_ingest_http_requests_total{status="5xx"}': "0+1x60",
                 'promfabric_ingest_queue_space_bytes{pod="i"}': "1e11x60",
                 'promfabric_ingest_queues_behind{pod="w"}': "1x10 0x50",
                 'promfabric_ingest_store_away{pod="i"}': "0x60",
                 'promfabric_ingest_member{pod="i"}': "1x120",
                 'promfabric_ingest_member{pod="k"}': "1x120",
                 'promfabric_ingest_samples_refused_total': "0+1x60",
                 'promfabric_ingest_samples_written_total{kind="float"}': "0+600x60",
                 'promfabric_ingest_queue_sync_seconds_bucket{le="0.01"}': "0+600x60",
                 'promfabric_ingest_queue_sync_seconds_bucket{le="1"}': "0+600x60",
                 'promfabric_ingest_queue_sync_seconds_bucket{le="+Inf"}': "0+600x60",
                 'promfabric_ingest_handoff_oldest_seconds{pod="i"}': "0x120",
                 'promfabric_ingest_handoff_dropped_total{why="cap"}': "0x120",
                 'promfabric_ingest_handoff_refused_total': "0x120",
                 'promfabric_ingest_handoff_failures_total': "0x120",
                 'promfabric_ingest_handoff_disk_failures_total': "0x120",
                 'promfabric_ingest_handoff_nodes_away': "0x120",
                 'promfabric_ingest_handoff_repair_marks': "0x120",
                 'promfabric_ingest_ring_slots_unwritable': "0x120",
                 'promfabric_ingest_ring_nodes_down': "0x120",
                 'promfabric_ingest_ring_move_failures_total': "0x120",
                 'promfabric_keeper_free_bytes{pod="w"}': "1e12x120",
                 'promfabric_keeper_free_bytes{pod="keeps nothing"}': "0x120",
                 'promfabric_keeper_told{pod="w"}': "1x120",
                 'promfabric_keeper_told{pod="keeps nothing"}': "0x120",
                 'promfabric_keeper_full_total{pod="w"}': "0x120",
                 'promfabric_keeper_damaged_total{pod="w"}': "0x120",
                 'promfabric_keeper_marks{pod="w"}': "3x30 0x90",
                 'promfabric_api_work_placed_total{where="owner"}': "0+100x120",
                 'promfabric_api_work_placed_total{where="other"}': "0+5x120",
                 'promfabric_ingest_state_stuck': "0x120",
                 'promfabric_ingest_state_waiting_parts': "0x120",
                 'promfabric_ingest_enrich_refused_total': "0x120",
                 'promfabric_ingest_state_age_seconds': "1x120",
                 'promfabric_ingest_state_upkeep_failures_total': "0x120"}
        wrong = {"PromfabricQueriesFail": {'promfabric_api_queries_total{outcome="timeout"}': "0+60x60"},
                 "PromfabricQueriesSlow": {
                     'promfabric_api_query_duration_seconds_bucket{le="0.1"}': "0+60x60"},
                 "PromfabricWorkWaits": {'promfabric_api_work_oldest_age_seconds': "20x60"},
                 "PromfabricNoWorker": {'promfabric_api_workers{state="accepting"}': "0x60"},
                 "PromfabricStreamsFlap": {'promfabric_api_control_disconnects_total': "0+30x60"},
                 "PromfabricArtifactsDamaged": {
                     'promfabric_api_artifact_fetch_failures_total{reason="checksum"}': "0x30 1x30"},
                 "PromfabricSegmentsQuarantined": {'promfabric_api_segments_quarantined': "0x30 1x30"},
                 "PromfabricStoreGone": {'promfabric_api_queries_total{outcome="store"}': "0+0.1x60"},
                 "PromfabricStoreStale": {'promfabric_api_catalog_refresh_errors_total': "0+5x60"},
                 "PromfabricRetentionBehind": {
                     'promfabric_api_retention_behind_seconds{pod="a"}': "22000x120",
                     'promfabric_api_retention_behind_seconds{pod="b"}': "90000x120"},
                 "PromfabricCompactionBehind": {
                     'promfabric_api_compaction_behind_seconds{pod="b"}': "90000x60"},
                 "PromfabricCompactionDamaged": {
                     'promfabric_api_compaction_damaged_segments{pod="a"}': "0x30 1x30"},
                 "PromfabricClocksDiffer": {
                     'promfabric_api_retention_runs_total{outcome="clocks"}': "0x30 1x30"},
                 "PromfabricTenantSettingsStale": {'promfabric_api_tenant_settings_stale{pod="w"}': "1x60"},
                 "PromfabricTenantLimited": {
                     'promfabric_ingest_limited_samples_total{limit="series"}': "0+60x60"},
                 "PromfabricDiskFull": {'promfabric_worker_no_space_total{pod="w"}': "0+5x60"},
                 "PromfabricIngestNoLeader": {'promfabric_ingest_queues_leaderless{pod="i"}': "1x60"},
                 "PromfabricIngestWritesFail": {'promfabric_ingest_http_requests_total{status="5xx"}': "0+60x60"},
                 "PromfabricIngestDiskFills": {'promfabric_ingest_queue_space_bytes{pod="i"}': "1e9x60"},
                 "PromfabricIngestStoreAway": {'promfabric_ingest_store_away{pod="i"}': "1x60"},
                 "PromfabricIngestGone": {'promfabric_ingest_member{pod="i"}': "1x40", 'promfabric_ingest_member{pod="k"}': "1x40"},
                 "PromfabricIngestNodeGone": {'promfabric_ingest_member{pod="k"}': "1x30 0x90"},
                 "PromfabricIngestBehind": {'promfabric_ingest_queues_behind{pod="w"}': "2x60"},
                 "PromfabricIngestRefuses": {'promfabric_ingest_samples_refused_total': "0+60x60"},
                 "PromfabricIngestSyncsSlow": {'promfabric_ingest_queue_sync_seconds_bucket{le="0.01"}': "0+300x60"},
                 "PromfabricHandoffOld": {'promfabric_ingest_handoff_oldest_seconds{pod="i"}': "1000+60x120",
                                          'promfabric_ingest_handoff_nodes_away': "1x120"},
                 "PromfabricHandoffFull": {'promfabric_ingest_handoff_dropped_total{why="cap"}': "0+1x120"},
                 "PromfabricHandoffFails": {'promfabric_ingest_handoff_failures_total': "0+1x120"},
                 "PromfabricRepairsWait": {'promfabric_ingest_handoff_repair_marks': "3x120"},
                 "PromfabricRingUnwritable": {'promfabric_ingest_ring_slots_unwritable': "7x120"},
                 "PromfabricKeeperDown": {'promfabric_ingest_ring_nodes_down': "1x120"},
                 "PromfabricKeeperFills": {'promfabric_keeper_free_bytes{pod="w"}': "1e9x120"},
                 "PromfabricKeeperDamaged": {'promfabric_keeper_damaged_total{pod="w"}': "0x30 1x90"},
                 "PromfabricKeeperLacks": {'promfabric_keeper_marks{pod="w"}': "3x120"},
                 "PromfabricMovesFail": {'promfabric_ingest_ring_move_failures_total': "0+1x120"},
                 "PromfabricWorkFarFromData": {'promfabric_api_work_placed_total{where="other"}': "0+50x120"},
                 "PromfabricStateMapsStuck": {'promfabric_ingest_state_waiting_parts': "1x120"},
                 "PromfabricEnrichmentRefuses": {'promfabric_ingest_enrich_refused_total': "0+1x120"},
                 "PromfabricStateMapsOld": {'promfabric_ingest_state_age_seconds': "0+60x120"},
                 "PromfabricStateUpkeepFails": {'promfabric_ingest_state_upkeep_failures_total': "0+1x120"}}
        self.assertEqual(set(wrong), {rule["alert"] for rule in rules})

        def world(changes, firing):
            series = {**quiet, **changes}
            return {"interval": "1m", "input_series": [
                {"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": [
                    {"eval_time": EVAL_TIMES.get(rule["alert"], "50m"), "alertname": rule["alert"], "exp_alerts": [
                        {"exp_labels": {**rule["labels"],
                                        **({"pod": "w"} if "by (pod)" in rule["expr"] else {}),
                                        **({"limit": "series"} if "by (limit)" in rule["expr"] else {})},
                         "exp_annotations": rule["annotations"]}] if rule["alert"] == firing else []}
                    for rule in rules]}
        tests = {"rule_files": ["rules"], "tests": [world({}, None)] + [
            world(changes, alert) for alert, changes in wrong.items()]}
        run = self.promtool("test", "rules", "tests", tests=tests, rules={
            "groups": find("s3", "PrometheusRule")["spec"]["groups"]})
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_each_alert_says_what_to_do(self):
        for rule in find("s3", "PrometheusRule")["spec"]["groups"][0]["rules"]:
            self.assertTrue(rule["annotations"]["summary"] and rule["annotations"]["action"])
            self.assertIn(rule["labels"]["severity"], ("page", "ticket"))


class Image(unittest.TestCase):
    """What can be compared without building it; test_image.py has the rest."""
    text = (TOP / "k8s/Dockerfile").read_text()

    def stages(self):
        lines = re.sub(r"\\\n\s*", "", self.text).splitlines()
        lines = [line for line in lines if line and not line.startswith("#")]
        starts = [i for i, line in enumerate(lines) if line.startswith("FROM ")]
        self.assertEqual(len(starts), 2)
        return lines[:starts[1]], lines[starts[1]:]

    def test_it_is_built_by_the_scripts_a_developer_runs(self):
        build, _ = self.stages()
        runs = [line.removeprefix("RUN ") for line in build if line.startswith("RUN ")]
        self.assertEqual(runs, ["scripts/setup --packages", "scripts/package /packages"])
        # The package is made of what scripts/up runs.
        up = re.findall(r"^(scripts/\S+.*)$", (TOP / "scripts/up").read_text(), re.M)
        package = re.findall(r"^(scripts/\S+.*)$", (TOP / "scripts/package").read_text(), re.M)
        self.assertEqual(up, ["scripts/setup", "scripts/build release"])
        self.assertEqual(package, ["scripts/setup --packages", "scripts/build --only promfabric release"])

    def test_what_setup_needs_is_copied_before_it_runs(self):
        build, _ = self.stages()
        before = build[:build.index("RUN scripts/setup --packages")]
        copied = [name for line in before if line.startswith("COPY ") for name in line.split()[1:-1]]
        needed = {"scripts/setup"}
        for file in ("scripts/setup", "scripts/lib/*.sh"):
            for path in TOP.glob(file):
                needed |= set(re.findall(r"\$top/([\w./-]+\.\w+)", path.read_text()))
        needed = {file for file in needed if (TOP / file).is_file()}
        self.assertIn("web/package-lock.json", needed)
        for file in needed:
            self.assertTrue(any(file.startswith(c) for c in copied), file)

    def test_the_same_debian_as_the_project(self):
        images = re.findall(r"^FROM (\S+)", self.text, re.M)
        self.assertEqual(set(images), {"debian:12-slim$DIGEST"})
        self.assertIn("ARG DIGEST=\n", self.text)

    def test_it_does_not_run_as_root(self):
        _, final = self.stages()
        user = [line for line in final if line.startswith("USER ")][-1]
        pod = pod_of("s3", "api")["securityContext"]
        self.assertEqual(user, f"USER {pod['runAsUser']}:{pod['runAsGroup']}")

    def test_ports_are_exposed(self):
        exposed = set(re.search(r"^EXPOSE (.*)$", self.text, re.M)[1].split())
        ports = {str(p["containerPort"]) for role in ROLES
                 for p in container_of("s3", role)["ports"]}
        self.assertEqual(exposed, ports)

    def test_it_holds_the_package_that_is_tested_on_a_bare_machine(self):
        """Its libraries are the package's dependencies, which tests/integration/package installs."""
        _, final = self.stages()
        self.assertIn("COPY --from=build /packages/*.deb /tmp/", final)
        installs = [line for line in final if "apt-get install" in line]
        self.assertEqual(len(installs), 1)
        self.assertIn("--no-install-recommends /tmp/*.deb", installs[0])


if __name__ == "__main__":
    unittest.main()
