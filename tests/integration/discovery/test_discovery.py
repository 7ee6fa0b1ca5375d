"""test_discovery.py - where workers are: Kubernetes and ECS as documented, and DNS."""
import os
import shutil
import signal
import tempfile
import threading
import time
import unittest
import unittest.mock

from cloud import Ecs, Gate, Kubernetes, slice_of
from harness import START, Fabric, free_port, load, standard_lines, wait_for
from test_security import make_certificates

READY = {"ready": True, "serving": True, "terminating": False}
DRAINING = {"ready": False, "serving": True, "terminating": True}
ENDING = {"ready": False, "serving": False, "terminating": True}
STARTING = {"ready": False, "serving": False, "terminating": False}
# The first two as they are with publishNotReadyAddresses: `ready` is always true there.
PUBLISHED_ENDING = {"ready": True, "serving": False, "terminating": True}


class DiscoveryCase(unittest.TestCase):
    """Three workers that stay; an API of its own for each test."""

    @classmethod
    def setUpClass(cls):
        cls.fabric = Fabric(3)
        cls.ports = list(cls.fabric.control_ports)
        cls.fabric.control_ports = []
        load(cls.fabric.store, standard_lines(2, 50))

    @classmethod
    def tearDownClass(cls):
        cls.fabric.control_ports = cls.ports
        cls.fabric.close()

    def restart(self, *flags):
        self.fabric.api.stop()
        self.fabric.api_flags = list(flags)
        self.fabric.start_api()

    def addresses(self):
        return sorted(w["address"] for w in self.fabric.data("/api/v1/workers"))

    def wait_ports(self, *ports, timeout=10.0):
        """Until exactly the workers of these ports take work."""
        want = sorted(f"127.0.0.1:{port}" for port in ports)
        wait_for(f"workers {want}", lambda: self.addresses() == want and
                 self.fabric.scaling()["workers"]["accepting"] == len(want), timeout)

    def check_answer(self):
        self.assertEqual(len(self.fabric.query("up", START + 300)["result"]), 2)


class KubernetesCase(DiscoveryCase):
    def start(self, *flags, interval="1h", tls=None):
        """An API that finds workers through a stub. With an interval of an hour only a watch can be
        as quick as these tests ask for."""
        self.server = Kubernetes(tls)
        self.addCleanup(self.server.close)
        self.secrets = tls or tempfile.mkdtemp(prefix="pf-k8s-")
        self.addCleanup(shutil.rmtree, self.secrets)
        self.write("namespace", "metrics")
        self.write("token", self.server.token)
        self.restart("--discovery=kubernetes", "--kubernetes-service=workers",
                     f"--kubernetes-server={self.server.url}",
                     f"--kubernetes-secrets={self.secrets}", f"--discovery-interval={interval}",
                     *flags)

    def write(self, name, text):
        # As the kubelet does: the new file takes the old one's place at once.
        with open(f"{self.secrets}/{name}.new", "w") as file:
            file.write(text)
        os.rename(f"{self.secrets}/{name}.new", f"{self.secrets}/{name}")

    def one(self, index, conditions, name=None):
        return slice_of(name or f"workers-{index}", [("127.0.0.1", conditions)],
                        [("http", 1), ("control", self.ports[index])])

    def wait_watch(self):
        """Until a watch is open on what is there now."""
        wait_for("a watch", lambda: any(
            int(parameters["resourceVersion"]) >= self.server.version
            for parameters, _ in self.server.calls("watch")))


class ListAndWatch(KubernetesCase):
    def test_events_of_every_kind_are_followed(self):
        self.start()
        self.assertEqual(self.addresses(), [])
        self.server.put(self.one(0, READY))  # ADDED
        self.wait_ports(self.ports[0])
        self.server.put(slice_of("workers-0", [], [("control", self.ports[0])]))  # MODIFIED
        self.wait_ports()
        self.server.put(self.one(0, READY), self.one(1, READY))
        self.wait_ports(*self.ports[:2])
        self.server.delete("workers-0")  # DELETED
        self.wait_ports(self.ports[1])
        self.check_answer()

    def test_a_bookmark_is_not_a_change(self):
        self.start()
        self.server.put(self.one(0, READY))
        self.wait_ports(self.ports[0])
        self.wait_watch()
        lists = self.server.count("list")
        for _ in range(3):
            self.server.bookmark()
            time.sleep(0.2)
        self.assertEqual(self.server.count("list"), lists)
        self.server.put(self.one(1, READY))  # the same watch still tells
        self.wait_ports(*self.ports[:2])

    def test_a_list_in_pages_is_one_list(self):
        self.start()
        self.server.page = 1
        self.server.put(*[self.one(i, READY) for i in range(3)])
        self.wait_ports(*self.ports)
        pages = [parameters for parameters, _ in self.server.calls("list")
                 if "continue" in parameters]
        self.assertGreaterEqual(len(pages), 2)
        self.assertTrue(all(parameters["limit"] == "500" for parameters in pages))

    def test_a_page_that_expired_means_a_whole_list(self):
        self.start()
        self.server.page, self.server.expire_pages = 1, 1
        self.server.put(*[self.one(i, READY) for i in range(3)])
        self.wait_ports(*self.ports)
        self.assertTrue(any("limit" not in parameters
                            for parameters, _ in self.server.calls("list")))

    def check_gone(self):
        self.server.put(self.one(0, READY))
        self.wait_ports(self.ports[0])
        self.wait_watch()
        lists = self.server.count("list")
        # The change is in no history any more: only a new list can show it.
        with self.server.lock:
            self.server.slices["workers-1"] = self.one(1, READY)
        self.server.forget()
        self.wait_ports(*self.ports[:2])
        self.assertGreater(self.server.count("list"), lists)
        # The watch that follows begins where the new list ended.
        self.server.put(self.one(2, READY))
        self.wait_ports(*self.ports)

    def test_an_expired_watch_as_an_error_event(self):
        self.start()
        self.server.gone_as_event = True
        self.check_gone()

    def test_an_expired_version_as_status_410(self):
        """What was just listed is forgotten before the watch begins: listed again at once."""
        self.start()
        self.server.put(self.one(0, READY))
        self.wait_ports(self.ports[0])
        self.wait_watch()

        def compact():
            self.server.slices["workers-2"] = self.one(2, READY)
            self.server.version += 1
            self.server.forgotten = self.server.version
        self.server.before_watch = compact
        self.server.put(self.one(1, READY))
        self.wait_ports(*self.ports)
        self.assertIsNone(self.server.before_watch)

    def test_a_server_that_always_says_410_is_not_stormed(self):
        self.start(interval="200ms")
        self.server.put(self.one(0, READY))
        self.wait_ports(self.ports[0])
        with self.server.lock:  # every version is too old for a while
            self.server.forgotten = self.server.version + 10
            self.server.slices["workers-1"] = self.one(1, READY)
            self.server.lock.notify_all()
        self.wait_ports(*self.ports[:2])
        # No storm: at most one list at once, then one each interval.
        before = self.server.count("list")
        time.sleep(1.0)
        self.assertLessEqual(self.server.count("list") - before, 8)
        with self.server.lock:
            self.server.version = self.server.forgotten
        self.server.put(self.one(2, READY))
        self.wait_ports(*self.ports)

    def test_a_connection_cut_in_the_middle_of_an_event(self):
        self.start()
        self.server.put(self.one(0, READY))
        self.wait_ports(self.ports[0])
        self.wait_watch()
        with self.server.lock:
            self.server.cut = 1
        self.server.put(self.one(1, READY))
        self.wait_ports(*self.ports[:2])

    def test_an_api_server_that_is_away_takes_no_worker_away(self):
        self.start(interval="200ms")
        self.server.put(self.one(0, READY))
        self.wait_ports(self.ports[0])
        self.server.close()
        time.sleep(1.0)
        self.wait_ports(self.ports[0])
        self.check_answer()
        self.assertIn("discovery failed, the workers known so far stay", self.fabric.api.log_text())

    def test_without_the_right_to_watch_it_lists(self):
        self.start(interval="200ms")
        self.server.watch = False
        self.server.put(self.one(0, READY))
        self.wait_ports(self.ports[0])
        self.server.put(self.one(1, READY))
        self.wait_ports(*self.ports[:2])


class Access(KubernetesCase):
    def test_a_rotated_token_is_used_from_the_next_request_on(self):
        self.start(interval="200ms")
        self.server.put(self.one(0, READY))
        self.wait_ports(self.ports[0])
        self.server.rotate("n3w")  # the old one is refused before the file has changed
        self.server.put(self.one(1, READY))
        wait_for("a refusal", lambda: self.server.count("denied") > 0)
        self.wait_ports(self.ports[0])  # refused: what was known stays
        self.write("token", "n3w\n")
        self.wait_ports(*self.ports[:2])
        self.assertEqual(self.server.calls("list")[-1][1], "Bearer n3w")

    def test_the_request_names_namespace_and_service(self):
        self.start()
        self.server.put(self.one(0, READY))
        self.wait_ports(self.ports[0])
        parameters, token = self.server.calls("list")[0]
        self.assertEqual(token, "Bearer s3cret")
        self.assertEqual(parameters["labelSelector"], "kubernetes.io/service-name=workers")

    @unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
    def test_the_server_must_be_signed_by_the_pods_authority(self):
        folder = tempfile.mkdtemp(prefix="pf-k8s-tls-")
        make_certificates(folder)
        self.start(tls=folder, interval="200ms")
        self.server.put(self.one(0, READY))
        self.wait_ports(self.ports[0])
        # Another authority: nothing is asked of a server it did not sign.
        other = tempfile.mkdtemp(prefix="pf-k8s-ca-")
        self.addCleanup(shutil.rmtree, other)
        make_certificates(other)
        shutil.copy(f"{other}/ca.crt", f"{folder}/ca.crt")
        self.restart(*self.fabric.api_flags)
        asked = self.server.count("list")
        time.sleep(1.0)
        self.assertEqual((self.addresses(), self.server.count("list")), ([], asked))
        self.assertIn("certificate", self.fabric.api.log_text())


class Conditions(KubernetesCase):
    def test_only_endpoints_that_serve_are_dialled(self):
        self.start()
        self.server.put(self.one(0, STARTING), self.one(1, READY),
                        self.one(2, PUBLISHED_ENDING))
        self.wait_ports(self.ports[1])
        self.server.put(self.one(0, READY))
        self.wait_ports(*self.ports[:2])

    def test_conditions_that_are_not_told_mean_ready(self):
        self.start()
        self.server.put(self.one(0, {}), self.one(1, {"ready": False}), self.one(2, {"ready": True}))
        self.wait_ports(self.ports[0], self.ports[2])

    def test_several_slices_and_ports_by_name(self):
        self.start()
        both = [("127.0.0.1", READY)]
        self.server.put(
            slice_of("a", both, [("metrics", free_port()), ("control", self.ports[0])]),
            slice_of("b", both, [("control", self.ports[1])]),
            slice_of("b-too", both, [("control", self.ports[1])]),  # in two slices for a moment
            slice_of("no-such-port", both, [("http", self.ports[2])]),
            slice_of("ipv6", [("::1", STARTING)], [("control", self.ports[2])], "IPv6"))
        self.wait_ports(*self.ports[:2])

    def test_a_terminating_worker_finishes_its_work(self):
        """A worker drains with an artifact not yet fetched; its endpoint first terminates, then does
        not serve any more, because its readiness probe fails. The stream stays until the work is
        done, and nothing is run twice."""
        self.start()
        fabric = self.fabric
        gate = Gate(fabric.http_ports[0])
        self.addCleanup(gate.close)
        fabric.workers[0].stop()
        fabric.control_ports = self.ports
        fabric.start_worker(0, [f"--advertise-url={gate.url}"])
        fabric.control_ports = []
        self.server.put(self.one(0, READY))
        self.wait_ports(self.ports[0])
        self.check_answer()
        lost = fabric.metric("promfabric_api_control_disconnects_total")
        gate.set(False)
        answer = []
        thread = threading.Thread(
            target=lambda: answer.append(fabric.query("sum(up) + 1", START + 300)["result"]))
        thread.start()
        wait_for("all downloads held", lambda: 0 < gate.held == fabric.scaling()["work"]["inflight"])
        self.server.put(self.one(0, DRAINING), self.one(1, READY))
        fabric.workers[0].signal(signal.SIGTERM)
        wait_for("the drain", lambda: fabric.scaling()["workers"]["draining"] == 1)
        self.server.put(self.one(0, ENDING))
        wait_for("the other worker", lambda: fabric.scaling()["workers"]["accepting"] == 1)
        time.sleep(0.5)
        self.assertEqual(fabric.metric("promfabric_api_control_disconnects_total"), lost)
        self.assertTrue(thread.is_alive())
        gate.set(True)
        thread.join(20)
        self.assertEqual(answer[0][0]["value"][1], "2")
        self.assertEqual(fabric.metric("promfabric_api_work_reassigned_total"), 0)
        self.assertEqual(fabric.workers[0].process.wait(20), 0)
        fabric.workers[0].stop()
        self.server.delete("workers-0")
        self.wait_ports(self.ports[1])
        fabric.control_ports = self.ports
        fabric.start_worker(0)
        fabric.control_ports = []


class EcsTasks(DiscoveryCase):
    KEYS = {"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "eu-test-1"}

    def start(self, env):
        self.server = Ecs()
        self.addCleanup(self.server.close)
        old = {key: os.environ.pop(key) for key in list(os.environ) if key.startswith("AWS_")}
        os.environ.update(env(self.server) if callable(env) else env)

        def restore():
            for key in [key for key in os.environ if key.startswith("AWS_")]:
                os.environ.pop(key)
            os.environ.update(old)
        self.addCleanup(restore)
        # Tasks have one port and differ by address: here one address serves, others stand for tasks
        # that must not be dialled.
        self.restart("--discovery=ecs", "--ecs-cluster=c", "--ecs-service=s",
                     f"--ecs-port={self.ports[0]}", "--discovery-interval=200ms",
                     f"--ecs-endpoint={self.server.url}")

    def put(self, **tasks):
        with self.server.lock:
            self.server.tasks = {f"arn:aws:ecs:eu-test-1:1:task/c/{name}": task
                                 for name, task in tasks.items()}

    def test_running_tasks_are_workers_and_stopped_ones_are_not(self):
        self.start(self.KEYS)
        self.put(a={"address": "127.0.0.1", "lastStatus": "RUNNING"},
                 b={"address": "127.0.0.9", "lastStatus": "PENDING"},
                 c={"lastStatus": "PROVISIONING"},
                 d={"address": "127.0.0.8", "lastStatus": "RUNNING", "desiredStatus": "STOPPED"})
        self.wait_ports(self.ports[0])
        self.check_answer()
        action, authorization, token, body = self.server.seen[0]
        self.assertEqual((action, body["cluster"], body["serviceName"], body["desiredStatus"]),
                         ("ListTasks", "c", "s", "RUNNING"))
        self.assertTrue(authorization.startswith("AWS4-HMAC-SHA256 Credential=AKIDTEST/"))
        self.assertIn("/eu-test-1/ecs/aws4_request", authorization)
        self.assertIsNone(token)
        self.put(a={"address": "127.0.0.1", "lastStatus": "RUNNING", "desiredStatus": "STOPPED"})
        self.wait_ports()

    def test_tasks_come_in_pages(self):
        self.start(self.KEYS)
        self.server.page = 2
        self.put(**{f"t{i}": {"address": "127.0.0.9", "lastStatus": "PENDING"} for i in range(4)},
                 z={"address": "127.0.0.1", "lastStatus": "RUNNING"})
        self.wait_ports(self.ports[0])
        with self.server.lock:
            pages = [body for action, _, _, body in self.server.seen
                     if action == "ListTasks" and "nextToken" in body]
        self.assertEqual({body["nextToken"] for body in pages}, {"2+/=", "4+/="})

    def test_a_refusal_takes_no_worker_away(self):
        self.start(self.KEYS)
        self.put(a={"address": "127.0.0.1", "lastStatus": "RUNNING"})
        self.wait_ports(self.ports[0])
        self.server.fail = (400, {"__type": "ThrottlingException", "message": "Rate exceeded"})
        time.sleep(1.0)
        self.wait_ports(self.ports[0])
        self.assertIn("Rate exceeded", self.fabric.api.log_text())
        self.server.fail = None
        self.put()
        self.wait_ports()

    def test_credentials_of_the_task_are_used_and_renewed(self):
        """Inside a task keys come from the endpoint that the agent names, and change."""
        self.start(lambda server: {
            "AWS_REGION": "eu-test-1", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "for-the-agent",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/v2/credentials"})
        self.server.authorization = "for-the-agent"
        self.put(a={"address": "127.0.0.1", "lastStatus": "RUNNING"})
        time.sleep(0.5)
        self.assertEqual(self.addresses(), [])  # no keys yet
        for key in ("ASIAONE", "ASIATWO"):
            self.server.keys = {"AccessKeyId": key, "SecretAccessKey": "secret",
                                "Token": f"session-{key}", "Expiration": "2099-01-01T00:00:00Z"}
            wait_for(f"requests signed with {key}", lambda: any(
                f"Credential={key}/" in authorization and token == f"session-{key}"
                for _, authorization, token, _ in list(self.server.seen)))
            self.wait_ports(self.ports[0])
        self.assertEqual(set(self.server.key_requests), {"for-the-agent"})


class File(DiscoveryCase):
    def write(self, *lines):
        with open(f"{self.file}.new", "w") as file:
            file.write("\n".join(lines))
        os.rename(f"{self.file}.new", self.file)

    def test_it_is_read_again_and_nonsense_changes_nothing(self):
        folder = tempfile.mkdtemp(prefix="pf-workers-")
        self.addCleanup(shutil.rmtree, folder)
        self.file = os.path.join(folder, "workers")
        self.write("# two of them", f"127.0.0.1:{self.ports[0]}", "", f"  127.0.0.1:{self.ports[1]}  # in rack 2")
        self.restart("--discovery=file", f"--workers-file={self.file}", "--discovery-interval=50ms")
        self.wait_ports(*self.ports[:2])
        self.write(f"127.0.0.1:{self.ports[1]}", f"127.0.0.1:{self.ports[2]}")
        self.wait_ports(*self.ports[1:])
        self.check_answer()
        for number, lines in enumerate(([f"127.0.0.1:{self.ports[0]}", "nowhere"], None)):
            if lines:
                self.write(*lines)
            else:
                for ports in (self.ports[2:], self.ports[1:]):  # so that a good one was read for sure
                    self.write(*(f"127.0.0.1:{port}" for port in ports))
                    self.wait_ports(*ports)
                os.unlink(self.file)
            wait_for("a warning", lambda number=number: self.fabric.api.log_text().count(
                "the workers known so far stay") == number + 1)
            self.wait_ports(*self.ports[1:])
        self.assertIn("line 2 is not HOST:PORT", self.fabric.api.log_text())
        self.write(f"127.0.0.1:{self.ports[0]}")
        self.wait_ports(self.ports[0])
        self.check_answer()


class Dns(DiscoveryCase):
    def test_every_address_of_a_name_is_dialled(self):
        self.restart("--discovery=dns", f"--worker=localhost:{self.ports[0]}",
                     "--discovery-interval=200ms")
        # localhost may have an IPv6 address too, on which nobody listens.
        self.fabric.wait_workers(1)
        self.check_answer()

    def test_a_name_without_addresses_is_no_worker(self):
        # To end, the API waits for the lookup: no long one, should there be no server of names.
        with unittest.mock.patch.dict(os.environ, RES_OPTIONS="timeout:1 attempts:1"):
            self.restart("--discovery=dns", "--worker=no-such-name.invalid:1",
                         "--discovery-interval=200ms")
        self.assertEqual(self.addresses(), [])
        self.assertEqual(self.fabric.get("/livez")[0], 200)


if __name__ == "__main__":
    unittest.main()
