"""test_image.py - the image of k8s/Dockerfile, started as the manifests say.

Without a daemon an image is a root file system and what to run in it. PROMFABRIC_IMAGE_ROOT names one that
scripts/image has built; else the steps of the Dockerfile's second stage are taken here, one by one, on a
bare Debian 12 in a chroot, with the package that the first stage would have made.

Each pod is a process with this root, read-only, with the pod's volumes, its user and group and no
capabilities, and the environment, arguments and ports of the overlay `local`; nothing of it is changed
for this machine. Pods share a network namespace of their own, where the loopback is their network and an
API server of ours tells of the worker. What is not here: the seccomp profile, limits of memory."""
import ctypes
import functools
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import unittest

from certificates import make_certificates
from cloud import Kubernetes, slice_of
from harness import START, load, standard_lines, wait_for
from test_manifests import TOP, container_of, environment, make_secrets, pod_of

CLONE_NEWNET = 0x40000000
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def run(*args, **more):
    done = subprocess.run(args, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise AssertionError(f"{args}: exit code {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


@functools.cache
def last_stage():
    """The instructions of the stage that becomes the image: [(WORD, rest)]."""
    text = re.sub(r"\\\n\s*", "", (TOP / "k8s/Dockerfile").read_text())
    lines = [line.split(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    last = max(i for i, line in enumerate(lines) if line[0] == "FROM")
    return lines[last:]


def setting(word):
    return [rest for name, rest in last_stage() if name == word][-1]


def assemble(folder):
    """The root file system, by the steps of the last stage."""
    root = folder / "root"
    for word, rest in last_stage():
        if word == "FROM":
            run(TOP / "tests/integration/package/bare-debian", root)
        elif word == "COPY":
            source, target = rest.removeprefix("--from=build ").split()
            run(TOP / "scripts/package", folder / source.strip("/").split("/")[0])
            for file in folder.glob(source.strip("/")):
                shutil.copy(file, root / target.strip("/"))
        elif word == "RUN":
            run("chroot", root, "/bin/sh", "-c", rest, env={"PATH": PATH, "LC_ALL": "C",
                                                            "DEBIAN_FRONTEND": "noninteractive"})
        elif word not in ("USER", "EXPOSE", "ENTRYPOINT"):
            raise AssertionError(f"{word}: do not know how to")
    return root


class Pods(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("a chroot needs root")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="pf-image-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        built = os.environ.get("PROMFABRIC_IMAGE_ROOT")
        if not built and not shutil.which("debootstrap"):
            raise unittest.SkipTest("debootstrap is not installed")
        cls.root = pathlib.Path(built) if built else assemble(cls.folder)
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
            raise unittest.SkipTest("no network namespaces here")
        run("ip", "link", "set", "lo", "up")
        cls.prepare()
        cls.processes = {}
        for role in ("worker", "api"):
            cls.start(role)
        try:
            wait_for("a worker",
                     lambda: b'"accepting":1' in cls.get("api", 8080, "/monitor/scaling")[1])
        except AssertionError as problem:
            raise AssertionError(f"{problem}\n{(cls.folder / 'api.log').read_text()[-3000:]}")

    @classmethod
    def prepare(cls):
        """What the cluster has: a volume with segments, secrets, and an API server that knows the worker."""
        api = environment("local", "api")
        (cls.folder / "store").mkdir()
        load(str(cls.folder / "store"), standard_lines(2, 50))
        make_secrets(cls.folder, f"{cls.folder}/made", "default")
        made = cls.folder / "made"
        cls.keys = dict(line.split()[::2] for line in (made / "keys.txt").read_text().splitlines())
        cls.context = ssl.create_default_context(cafile=made / "ca.crt")
        account = cls.folder / "account"
        account.mkdir()
        make_certificates(account)
        cls.server = Kubernetes(str(account), namespace="promfabric",
                                service=api["PROMFABRIC_KUBERNETES_SERVICE"])
        cls.addClassCleanup(cls.server.close)
        (account / "token").write_text(cls.server.token)
        (account / "namespace").write_text("promfabric")
        cls.server.put(slice_of("w", [("127.0.0.1", {"ready": True, "serving": True})], [
            (api["PROMFABRIC_KUBERNETES_PORT"], 8082)]))

    @classmethod
    def volumes(cls, role):
        """[(mount path, folder on this machine, read-only)]"""
        pod, found = pod_of("local", role), []
        group = pod["securityContext"]["fsGroup"]
        sources = {volume["name"]: volume for volume in pod["volumes"]}
        for mount in container_of("local", role)["volumeMounts"]:
            volume = sources[mount["name"]]
            if "secret" in volume:
                folder = cls.folder / volume["secret"]["secretName"]
            elif "persistentVolumeClaim" in volume:
                folder = cls.folder / "store"
            else:
                folder = cls.folder / f"empty-{role}-{mount['name']}"
                folder.mkdir()
                folder.chmod(0o2777)
            for path in [folder, *folder.rglob("*")]:
                os.chown(path, 0, group)
            found.append((mount["mountPath"], folder, mount.get("readOnly", False)))
        if pod.get("automountServiceAccountToken", True):
            os.chown(cls.folder / "account/token", 0, group)
            found.append((ACCOUNT, cls.folder / "account", True))
        return found

    @classmethod
    def start(cls, role):
        pod, container = pod_of("local", role), container_of("local", role)
        security = pod["securityContext"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        user, group = security["runAsUser"], security["runAsGroup"]
        script = [f"mount --bind {cls.root} {cls.root}", f"mount -t proc proc {cls.root}/proc"]
        for path, folder, read_only in cls.volumes(role):
            # Links of the image (/var/run) lead somewhere within it.
            path = run("chroot", cls.root, "/usr/bin/readlink", "-m", path).strip()
            (cls.root / path.strip("/")).mkdir(parents=True, exist_ok=True)
            script += [f"mount --bind {folder} {cls.root}{path}"]
            script += [f"mount -o remount,bind,ro {cls.root}{path}"] if read_only else []
        command = [*json.loads(setting("ENTRYPOINT")), *container["args"]]
        script += [f"mount -o remount,bind,ro {cls.root}",
                   f"exec chroot {cls.root} /usr/bin/setpriv --reuid={user} --regid={group} "
                   f"--groups={security['fsGroup']} --no-new-privs --bounding-set=-all "
                   f"--inh-caps=-all {' '.join(command)}"]
        log = open(cls.folder / f"{role}.log", "wb")
        process = subprocess.Popen(
            ["unshare", "--mount", "--propagation=private", "sh", "-ec", "\n".join(script)],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/", env=environment(
                "local", role, PATH=PATH, KUBERNETES_SERVICE_HOST="127.0.0.1",
                KUBERNETES_SERVICE_PORT=str(cls.server.port)))
        cls.processes[role] = process
        cls.addClassCleanup(log.close)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)
        port = container["ports"][0]["containerPort"]

        def ready():
            if process.poll() is not None:
                raise AssertionError((cls.folder / f"{role}.log").read_text()[-3000:])
            return cls.get(role, port, "/readyz")[0] == 200
        wait_for(role, ready, timeout=60)

    @classmethod
    def get(cls, role, port, path, key=""):
        """Over TLS, with the name that the role's certificate has."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
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

    def status_of(self, role):
        text = pathlib.Path(f"/proc/{self.processes[role].pid}/status").read_text()
        return dict(re.findall(r"^(\w+):\s+(.*)$", text, re.M))

    def test_a_query_is_answered_to_who_has_a_key(self):
        path = f"/api/v1/query?query=up&time={START + 300}"
        status, body = self.get("api", 8080, path, self.keys["default"])
        self.assertEqual((status, len(json.loads(body)["data"]["result"])), (200, 2))
        self.assertEqual(self.get("api", 8080, path)[0], 401)

    def test_probes_answer_on_the_ports_of_the_image(self):
        exposed = set(setting("EXPOSE").split())
        for role in ("api", "worker"):
            container = container_of("local", role)
            ports = {port["name"]: port["containerPort"] for port in container["ports"]}
            self.assertLessEqual({str(port) for port in ports.values()}, exposed)
            for name, probe in container.items():
                if name.endswith("Probe"):
                    get = probe["httpGet"]
                    self.assertEqual(self.get(role, ports[get["port"]], get["path"])[0], 200, (role, name))

    def test_nobody_is_root_and_nothing_is_writable(self):
        for role in ("api", "worker"):
            status = self.status_of(role)
            self.assertEqual(status["Uid"].split()[0], setting("USER").split(":")[0])
            self.assertEqual({status[name] for name in ("CapEff", "CapPrm", "CapBnd")}, {"0" * 16})
            self.assertEqual(status["NoNewPrivs"], "1")
            mounts = pathlib.Path(f"/proc/{self.processes[role].pid}/mountinfo").read_text().splitlines()
            options = {line.split()[4]: line.split()[5].split(",") for line in mounts}
            self.assertIn("ro", options["/"])
            self.assertIn("rw", options["/spool"])

    def test_what_hooks_run_is_in_the_image(self):
        command = container_of("local", "api")["lifecycle"]["preStop"]["exec"]["command"]
        found = run("chroot", self.root, "/bin/sh", "-c", f"command -v {command[0]}", env={"PATH": PATH})
        self.assertTrue(found.strip())

    def test_signals_end_it_in_time(self):
        """Last of all: the pods are told to end, as Kubernetes does it."""
        for role in ("api", "worker"):
            self.processes[role].send_signal(signal.SIGTERM)
            grace = pod_of("local", role)["terminationGracePeriodSeconds"]
            self.assertEqual(self.processes[role].wait(grace), 0, role)


class Manifest(unittest.TestCase):
    def test_the_user_of_the_image_is_that_of_the_pods(self):
        for role in ("api", "worker"):
            security = pod_of("local", role)["securityContext"]
            self.assertEqual(setting("USER"), f"{security['runAsUser']}:{security['runAsGroup']}")


if __name__ == "__main__":
    unittest.main()
