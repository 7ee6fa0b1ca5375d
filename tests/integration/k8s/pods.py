"""pods.py - processes that run as an overlay says, under the names that its pods have."""
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import ssl
import subprocess
import tempfile
import unittest
import urllib.parse

from harness import BINARY, Process, wait_for
from test_manifests import environment, find, make_secrets

PEERS = "promfabric-ingest-peers"
DOMAIN = f"{PEERS}.promfabric.svc"  # no certificate may have a wildcard below a single word


def pods_of(overlay, role):
    count = find(overlay, "StatefulSet", f"promfabric-{role}")["spec"]["replicas"]
    return [f"promfabric-{role}-{i}" for i in range(count)]


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "names of pods need a mount namespace: not root")
class PodsTest(unittest.TestCase):
    """Every process sees a file of hosts in which the names of pods are addresses of the loopback. Ingest nodes run, as one
    cluster; classes that inherit this say of which overlay and start what else they need."""
    overlay = None
    domains = {"ingest": DOMAIN}  # of roles whose pods are called by name

    @classmethod
    def settings(cls):
        """Of ingest nodes, what is different on this machine."""
        os.makedirs(f"{cls.folder}/store", exist_ok=True)
        return {"PROMFABRIC_STORE": f"{cls.folder}/store"}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="pf-live-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        make_secrets(cls.folder, f"{cls.folder}/made", "default")
        made = pathlib.Path(cls.folder, "made")
        cls.keys = dict(line.split()[::2] for line in (made / "keys.txt").read_text().splitlines())
        cls.context = ssl.create_default_context(cafile=made / "ca.crt")
        net = f"127.{random.randrange(1, 255)}.{random.randrange(255)}"
        names = {pod: domain for role, domain in cls.domains.items() for pod in pods_of(cls.overlay, role)}
        cls.addresses = {pod: f"{net}.{i + 1}" for i, pod in enumerate(names)}
        cls.hosts = f"{cls.folder}/hosts"
        pathlib.Path(cls.hosts).write_text("127.0.0.1 localhost\n" + "".join(
            f"{address} {pod}.{names[pod]}\n" for pod, address in cls.addresses.items()) +
            f"{cls.addresses['promfabric-ingest-0']} promfabric-ingest.promfabric.svc\n")
        cls.processes, cls.service = {}, set()
        for pod in pods_of(cls.overlay, "ingest"):
            cls.start_node(pod)
        done = cls.run_form()
        assert done.returncode == 0, done.stderr
        for pod in pods_of(cls.overlay, "ingest"):
            cls.await_ready(pod)

    @classmethod
    def in_pod(cls):
        return ["unshare", "--mount", "sh", "-c", f'mount --bind "{cls.hosts}" /etc/hosts && exec "$@"', "sh"]

    @classmethod
    def mounted(cls, role, values):
        where = {"/tls/": f"{cls.folder}/promfabric-{role}-tls/", "/keys/": f"{cls.folder}/promfabric-api-keys/",
                 "/ingest-key/": f"{cls.folder}/promfabric-ingest-key/", "/data/": f"{cls.folder}/data-"}

        def map_one(value):
            for mount, folder in where.items():
                value = re.sub(rf"(^|=){mount}", lambda m, folder=folder: m[1] + folder, value)
            return value
        return {name: map_one(value) for name, value in values.items()} if isinstance(values, dict) else \
            [map_one(value) for value in values]

    @classmethod
    def start_node(cls, pod):
        env = cls.mounted("ingest", environment(
            cls.overlay, "ingest", pod, PROMFABRIC_DATA=f"/data/{pod}", PROMFABRIC_HTTP_LISTEN=f"{cls.addresses[pod]}:8083",
            PROMFABRIC_PEER_LISTEN=f"{cls.addresses[pod]}:8084", **cls.settings()))
        cls.processes[pod] = Process(cls.folder, pod, ["ingest"], env, wrapper=cls.in_pod())
        cls.addClassCleanup(cls.processes[pod].kill)

    @classmethod
    def run_form(cls, *more, job="promfabric-ingest-form"):
        """What a Job does that forms something; its Secrets are those of the role ingest."""
        container, = find(cls.overlay, "Job", job)["spec"]["template"]["spec"]["containers"]
        return subprocess.run([*cls.in_pod(), BINARY, *cls.mounted("ingest", container["args"]), *more],
                              capture_output=True, text=True, timeout=180)

    @classmethod
    def connect(cls, pod):
        connection = http.client.HTTPConnection(cls.addresses[pod], 8083, timeout=20)
        connection.connect()
        connection.sock = cls.context.wrap_socket(connection.sock, server_hostname=f"{pod}.{DOMAIN}")
        return connection

    @classmethod
    def status(cls, pod, path):
        try:
            with contextlib.closing(cls.connect(pod)) as connection:
                connection.request("GET", path)
                return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0

    @classmethod
    def await_ready(cls, pod):
        wait_for(f"{pod} to be ready", lambda: cls.status(pod, "/readyz") == 200, 60)
        cls.service.add(pod)

    def ask(self, port, query):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=40)
        connection.connect()
        connection.sock = self.context.wrap_socket(connection.sock, server_hostname="promfabric-api")
        with contextlib.closing(connection):
            connection.request("GET", "/api/v1/query?" + urllib.parse.urlencode({"query": query}),
                               headers={"Authorization": f"Bearer {self.keys['default']}"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
