"""test_security.py - API keys, and TLS on HTTP and on the control streams."""
import hashlib
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest
import warnings

from certificates import make_certificate, make_certificates
from harness import BINARY, START, Fabric, load, standard_lines, wait_for


def private(path, flags):
    """Opens a file that nobody else may read."""
    return os.open(path, flags, 0o600)


class Keys(unittest.TestCase):
    def test_keys_are_read_again_and_may_be_digests(self):
        folder = tempfile.mkdtemp(prefix="pf-keys-")
        self.addCleanup(shutil.rmtree, folder)

        def write(text):
            with open(f"{folder}/new", "w", opener=private) as file:
                file.write(text)
            os.rename(f"{folder}/new", f"{folder}/keys")

        def status(key):
            return fabric.get("/api/v1/labels", headers={"Authorization": f"Bearer {key}"})[0]

        write("old team-a\n")
        fabric = Fabric(1, (f"--api-keys={folder}/keys",))
        self.addCleanup(fabric.close)
        fabric.wait_workers(1)
        self.assertEqual((status("old"), status("abc")), (200, 401))
        digest = hashlib.sha256(b"abc").hexdigest()
        write(f"sha256:{digest} team-a alice\n")
        wait_for("the new keys", lambda: status("abc") == 200)
        self.assertEqual(status("old"), 401)
        write("nonsense\n")
        wait_for("a warning", lambda: "API keys cannot be read" in fabric.api.log_text())
        self.assertEqual(status("abc"), 200)

    def test_a_key_file_that_everybody_reads_is_refused(self):
        folder = tempfile.mkdtemp(prefix="pf-keys-")
        self.addCleanup(shutil.rmtree, folder)
        with open(f"{folder}/keys", "w") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write("alpha team-a\n")
        run = subprocess.run([BINARY, "api", f"--store={folder}", "--http-listen=127.0.0.1:0",
                              "--worker=127.0.0.1:1",
                              f"--spool={folder}/spool", f"--api-keys={folder}/keys"],
                             capture_output=True, text=True, timeout=30)
        self.assertEqual(run.returncode, 2)
        self.assertIn("has keys that everybody can read", run.stderr)

    def test_the_client_has_its_key_from_a_file_or_the_environment(self):
        folder = tempfile.mkdtemp(prefix="pf-keys-")
        self.addCleanup(shutil.rmtree, folder)
        for name, text in (("keys", "alpha team-a\n"), ("mine", " alpha \nsecond line\n"),
                           ("empty", "\n")):
            with open(f"{folder}/{name}", "w", opener=private) as file:
                file.write(text)
        fabric = Fabric(1, (f"--api-keys={folder}/keys",))
        self.addCleanup(fabric.close)

        def ask(*flags, **environment):
            run = subprocess.run([BINARY, "query", f"--url=http://127.0.0.1:{fabric.api_port}",
                                  *flags, "1+1"], capture_output=True, text=True, timeout=60,
                                 env={**os.environ, **environment})
            return run.returncode, (run.stdout if run.returncode == 0 else run.stderr).strip()

        self.assertEqual(ask()[0], 1)
        self.assertEqual(ask(f"--api-key-file={folder}/mine"), ask("--api-key=alpha"))
        self.assertEqual(ask(f"--api-key-file={folder}/mine")[0], 0)
        self.assertEqual(ask(PROMFABRIC_API_KEY="alpha")[0], 0)
        self.assertEqual(ask(PROMFABRIC_API_KEY_FILE=f"{folder}/mine")[0], 0)
        self.assertEqual(ask(f"--api-key-file={folder}/empty"),
                         (2, f"error: the first line of {folder}/empty is no API key"))
        self.assertEqual(ask("--api-key-file=/none")[0], 2)

    def test_workers_are_shown_to_operators_alone(self):
        folder = tempfile.mkdtemp(prefix="pf-keys-")
        self.addCleanup(shutil.rmtree, folder)
        with open(f"{folder}/keys", "w", opener=private) as file:
            file.write("alpha team-a\nroot *\n")
        fabric = Fabric(1, (f"--api-keys={folder}/keys",))
        self.addCleanup(fabric.close)

        def status(path, key):
            return fabric.get(path, headers={"Authorization": f"Bearer {key}"})[0]

        for path in ("/api/v1/workers", "/api/v1/workers?watch=1", "/api/v1/ingest", "/api/v1/quarantine",
                     "/api/v1/compaction", "/api/v1/status/flags", "/api/v1/status/config",
                     "/api/v1/status/runtimeinfo"):
            self.assertEqual(status(path, "alpha"), 403, path)
            if "watch" not in path:  # a stream that does not end
                self.assertIn(status(path, "root"), (200, 503), path)

    def test_a_key_opens_its_tenant(self):
        folder = tempfile.mkdtemp(prefix="pf-keys-")
        with open(f"{folder}/keys", "w", opener=private) as file:
            file.write("alpha team-a\nroot *\n")
        fabric = Fabric(1, (f"--api-keys={folder}/keys",))
        try:
            load(fabric.store, ["a_metric 1x100"], tenant="team-a")
            load(fabric.store, ["b_metric 1x100"], tenant="team-b")

            def names(**headers):
                status, answer = fabric.json("/api/v1/label/__name__/values", headers=headers)
                return status, answer.get("data")

            self.assertEqual(names()[0], 401)
            self.assertEqual(names(Authorization="Bearer wrong")[0], 401)
            self.assertEqual(names(Authorization="Bearer alpha"), (200, ["a_metric"]))
            self.assertEqual(names(**{"Authorization": "Bearer alpha",
                                      "X-Scope-OrgID": "team-b"})[0], 403)
            self.assertEqual(names(**{"Authorization": "Bearer root", "X-Scope-OrgID": "team-b"}),
                             (200, ["b_metric"]))
            self.assertEqual(fabric.get("/livez")[0], 200)
            self.assertEqual(fabric.get("/metrics")[0], 200)
        finally:
            fabric.close()
            shutil.rmtree(folder)


    def test_a_key_sees_and_cancels_its_own_queries_only(self):
        folder = tempfile.mkdtemp(prefix="pf-keys-")
        self.addCleanup(shutil.rmtree, folder)
        with open(f"{folder}/keys", "w", opener=private) as file:
            file.write("alpha team-a\nbeta team-b\nroot *\n")
        fabric = Fabric(1, (f"--api-keys={folder}/keys", "--worker-wait=60s"), start_workers=False)
        self.addCleanup(fabric.close)
        load(fabric.store, ["up 1x100"], tenant="team-a")
        keys = {name: {"Authorization": f"Bearer {name}"} for name in ("alpha", "beta", "root")}
        got = []
        thread = threading.Thread(target=lambda: got.append(fabric.get(
            "/api/v1/query", {"query": "up", "time": START}, headers=keys["alpha"])))
        thread.start()
        self.addCleanup(thread.join)

        def names(key):
            return [q["query_id"] for q in fabric.data("/api/v1/queries", headers=keys[key])]

        (name,) = wait_for("the query", lambda: names("root"))
        self.assertEqual((names("alpha"), names("beta")), ([name], []))
        path = f"/api/v1/queries/{name}"
        self.assertEqual(fabric.request("DELETE", path)[0], 401)
        self.assertEqual(fabric.request("DELETE", path, headers=keys["beta"])[0], 404)
        self.assertEqual(names("alpha"), [name])
        self.assertEqual(fabric.request("DELETE", path, headers=keys["alpha"])[0], 200)
        wait_for("its end", lambda: got)
        self.assertEqual(got[0][0], 499)


class Tls(unittest.TestCase):
    def setUp(self):
        if not shutil.which("openssl"):
            self.skipTest("openssl is not installed")
        self.folder = tempfile.mkdtemp(prefix="pf-tls-")
        make_certificates(self.folder)

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def api_flags(self, name="tls", *more):
        return (f"--control-tls-cert={self.folder}/{name}.crt",
                f"--control-tls-key={self.folder}/{name}.key",
                f"--control-tls-ca={self.folder}/ca.crt", *more)

    def worker_flags(self, name="tls", *more):
        return (f"--control-tls-cert={self.folder}/{name}.crt",
                f"--control-tls-key={self.folder}/{name}.key",
                f"--control-tls-client-ca={self.folder}/ca.crt",
                f"--http-tls-cert={self.folder}/{name}.crt",
                f"--http-tls-key={self.folder}/{name}.key", *more)

    def fabric(self, api, worker):
        fabric = Fabric(1, api, worker)
        self.addCleanup(fabric.close)
        load(fabric.store, standard_lines(2, 50))
        return fabric

    def test_a_worker_without_tls_for_artifacts_is_refused(self):
        """Who asks for certificates on the control streams does not fetch results in the clear."""
        fabric = self.fabric(self.api_flags(), self.worker_flags()[:3])
        wait_for("the refusal", lambda: "serves its artifacts without TLS" in fabric.api.log_text())
        self.assertEqual(fabric.scaling()["workers"]["accepting"], 0)

    def test_mutual_tls_on_the_control_streams_and_for_artifacts(self):
        fabric = self.fabric(self.api_flags(), self.worker_flags())
        fabric.wait_workers(1)
        self.assertEqual(len(fabric.query("up", START + 300)["result"]), 2)

        os.mkdir(f"{self.folder}/other")
        make_certificates(f"{self.folder}/other")

        def status(path, folder):
            """With the certificate of a folder, or with none."""
            context = ssl.create_default_context(cafile=f"{self.folder}/ca.crt")
            if folder:
                context.load_cert_chain(f"{folder}/tls.crt", f"{folder}/tls.key")
            connection = http.client.HTTPSConnection("localhost", fabric.http_ports[0],
                                                     context=context, timeout=20)
            connection.request("GET", path)
            got = connection.getresponse().status
            connection.close()
            return got

        token = "/artifacts/" + "0" * 32
        self.assertEqual(status(token, None), 403)
        self.assertEqual(status(token, f"{self.folder}/other"), 403)  # signed by somebody else
        self.assertEqual(status(token, self.folder), 404)
        self.assertEqual(status("/livez", None), 200)

    def test_workers_found_by_address_have_a_name_of_their_own(self):
        make_certificate(self.folder, "named", "fabric", "DNS:workers.internal")
        worker = self.worker_flags("named")
        fabric = self.fabric(self.api_flags("tls", "--control-tls-server-name=workers.internal"), worker)
        fabric.wait_workers(1)
        self.assertEqual(len(fabric.query("up", START + 300)["result"]), 2)

    def test_a_workers_certificate_gives_no_work(self):
        make_certificate(self.folder, "api", "query-api", "DNS:query-api")
        worker = self.worker_flags("tls", "--control-tls-client-name=query-api")
        good = self.fabric(self.api_flags("api"), worker)
        good.wait_workers(1)
        bad = Fabric(1, self.api_flags("tls"), worker)
        self.addCleanup(bad.close)
        wait_for("a refused stream", lambda: "has not the name of an API" in bad.api.log_text())
        self.assertEqual(bad.scaling()["workers"]["accepting"], 0)

    def test_tls_without_a_client_ca_is_refused_off_loopback(self):
        run = subprocess.run([BINARY, "worker", f"--store={self.folder}", f"--spool={self.folder}/s",
                              "--http-listen=127.0.0.1:0", "--control-listen=0.0.0.0:0",
                              f"--control-tls-cert={self.folder}/tls.crt",
                              f"--control-tls-key={self.folder}/tls.key"],
                             capture_output=True, text=True, timeout=30)
        self.assertIn(run.returncode, (1, 2))
        self.assertIn("--control-tls-client-ca", run.stderr)

    def https_fabric(self):
        fabric = Fabric(1)
        self.addCleanup(fabric.close)
        fabric.api.stop()
        fabric.api_flags = [f"--http-tls-cert={self.folder}/tls.crt",
                            f"--http-tls-key={self.folder}/tls.key"]
        fabric.up = lambda: "msg=serving" in fabric.api.log_text()[seen:]
        seen = len(fabric.api.log_text())
        fabric.start_api()
        return fabric

    def test_queries_over_https(self):
        fabric = self.https_fabric()
        context = ssl.create_default_context(cafile=f"{self.folder}/ca.crt")

        def ask():
            connection = http.client.HTTPSConnection("localhost", fabric.api_port,
                                                     context=context, timeout=20)
            connection.request("GET", "/api/v1/query?query=1%2B1")
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

        status, answer = wait_for("HTTPS", lambda: ask())
        self.assertEqual((status, answer["data"]["result"][1]), (200, "2"))

    def test_the_client_believes_the_authorities_it_is_told(self):
        fabric = self.https_fabric()
        os.mkdir(f"{self.folder}/other")
        make_certificates(f"{self.folder}/other")

        def ask(*args, host="127.0.0.1", **environment):
            run = subprocess.run([BINARY, *args, f"--url=https://{host}:{fabric.api_port}"],
                                 capture_output=True, text=True, timeout=60,
                                 env={**os.environ, **environment})
            return run.returncode, run.stdout + run.stderr

        ca = f"--tls-ca={self.folder}/ca.crt"
        code, text = ask("query", ca, "1+1")
        self.assertEqual(code, 0, text)
        self.assertIn("2", text)
        self.assertEqual(ask("query", "1+1", PROMFABRIC_TLS_CA=f"{self.folder}/ca.crt"), (0, text))
        # The system's authorities, and others, know nothing of it; nor do ours of another name.
        for wrong in (["query", "1+1"], ["query", f"--tls-ca={self.folder}/other/ca.crt", "1+1"],
                      ["query", "--tls-ca=/none", "1+1"], ["queue", "ls"],
                      ["queue", f"--tls-ca={self.folder}/other/ca.crt", "ls"]):
            code, text = ask(*wrong)
            self.assertEqual(code, 1, text)
            self.assertRegex(text, "(?i)certificate|CA")
        code, text = ask("query", ca, "1+1", host="127.0.0.2")
        self.assertEqual(code, 1, text)
        # The API keeps no queues, but its certificate is believed.
        self.assertIn("answered HTTP status 404", ask("queue", ca, "ls")[1])

    def context(self, side, version):
        """One that speaks this version and no other."""
        context = ssl.SSLContext(side)
        context.load_verify_locations(f"{self.folder}/ca.crt")
        context.load_cert_chain(f"{self.folder}/tls.crt", f"{self.folder}/tls.key")
        context.set_ciphers("ALL:@SECLEVEL=0")  # else Python would not even offer the old ones
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = version
        return context

    def shakes_hands(self, port, version, protocols):
        context = self.context(ssl.PROTOCOL_TLS_CLIENT, version)
        context.set_alpn_protocols(protocols)
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=20) as plain, \
                    context.wrap_socket(plain, server_hostname="localhost"):
                return True
        except (ssl.SSLError, ConnectionError):
            return False

    def asked_by_client(self, version):
        """Whether the client talks to a server that speaks this version."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            client = subprocess.Popen([BINARY, "query", f"--tls-ca={self.folder}/ca.crt", "1+1",
                                       f"--url=https://127.0.0.1:{listening.getsockname()[1]}"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(client.wait)
            self.addCleanup(client.kill)
            plain, _ = listening.accept()
            plain.settimeout(20)
            with plain:
                try:
                    with self.context(ssl.PROTOCOL_TLS_SERVER, version).wrap_socket(
                            plain, server_side=True) as tls:
                        return tls.recv(4) in (b"GET ", b"POST")
                except (ssl.SSLError, ConnectionError):
                    return False

    def test_tls_1_2_is_the_least(self):
        fabric = self.fabric(self.api_flags(), self.worker_flags())
        fabric.wait_workers(1)
        old, least, best = ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
        for port, protocols in ((fabric.control_ports[0], ["h2"]), (fabric.http_ports[0], []),
                                (self.https_fabric().api_port, [])):
            self.assertEqual([self.shakes_hands(port, version, protocols)
                              for version in (old, least, best)], [False, True, True], port)
        self.assertEqual([self.asked_by_client(version) for version in (old, least, best)],
                         [False, True, True])

    def test_an_api_without_a_certificate_gets_no_worker(self):
        worker = (f"--control-tls-cert={self.folder}/tls.crt",
                  f"--control-tls-key={self.folder}/tls.key",
                  f"--control-tls-client-ca={self.folder}/ca.crt")
        fabric = Fabric(1, ("--worker-wait=1s",), worker)
        try:
            load(fabric.store, standard_lines(2, 50))
            status, _ = fabric.json("/api/v1/query", {"query": "up", "time": START + 300})
            self.assertEqual(status, 503)
            self.assertEqual(fabric.scaling()["workers"]["alive"], 0)
        finally:
            fabric.close()


if __name__ == "__main__":
    unittest.main()
