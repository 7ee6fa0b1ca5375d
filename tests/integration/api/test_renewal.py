"""test_renewal.py - certificates, keys and authorities that change under running processes."""
import http.client
import os
import shutil
import ssl
import tempfile
import threading
import unittest

from certificates import make_certificates
from harness import START, Fabric, load, standard_lines, wait_for


def connect(port, folder, ca):
    """A TLS connection that shows the certificate of @folder and believes those in @ca."""
    context = ssl.create_default_context(cafile=f"{ca}/ca.crt")
    context.load_cert_chain(f"{folder}/tls.crt", f"{folder}/tls.key")
    return http.client.HTTPSConnection("localhost", port, context=context, timeout=20)


def status(port, path, folder, ca):
    """Of a request on a connection of its own; None: the server's certificate is not believed."""
    connection = connect(port, folder, ca)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except ssl.SSLCertVerificationError:
        return None
    finally:
        connection.close()


class Renewal(unittest.TestCase):
    """Three folders: what processes use, and certificates of an old and a new authority."""

    def setUp(self):
        if not shutil.which("openssl"):
            self.skipTest("openssl is not installed")
        self.used, self.old, self.new = (tempfile.mkdtemp(prefix="pf-tls-") for _ in range(3))
        for folder in (self.used, self.old, self.new):
            self.addCleanup(shutil.rmtree, folder)
        make_certificates(self.old)
        make_certificates(self.new)
        for name in ("ca.crt", "tls.crt", "tls.key"):
            self.replace(name, self.text(self.old, name))

    def text(self, folder, name):
        with open(f"{folder}/{name}") as file:
            return file.read()

    def replace(self, name, text):
        with open(f"{self.used}/{name}.new", "w") as file:
            file.write(text)
        os.rename(f"{self.used}/{name}.new", f"{self.used}/{name}")

    def flags(self, kind, ca):
        return (f"--{kind}-tls-cert={self.used}/tls.crt", f"--{kind}-tls-key={self.used}/tls.key",
                *((f"--control-tls-{ca}={self.used}/ca.crt",) if ca else ()))

    def test_a_fabric_moves_to_another_authority_under_queries(self):
        """As one renews: both authorities, the new certificate (for a moment without its key), the new
        authority alone. No query notices; then nobody believes the old authority."""
        api = (*self.flags("control", "ca"), "--worker-wait=30s")
        worker = (*self.flags("control", "client-ca"), *self.flags("http", None))
        fabric = Fabric(1, api, worker)
        self.addCleanup(fabric.close)
        load(fabric.store, standard_lines(2, 50))
        fabric.wait_workers(1)
        port, token = fabric.http_ports[0], "/artifacts/" + "0" * 32
        answers, stop = [], threading.Event()

        def ask_on():
            while not stop.is_set():
                answers.append(fabric.json("/api/v1/query", {"query": "up", "time": START + 300}))

        asking = threading.Thread(target=ask_on)
        asking.start()
        try:
            self.assertEqual(status(port, token, self.old, self.old), 404)
            self.assertEqual(status(port, token, self.new, self.old), 403)
            self.replace("ca.crt", self.text(self.old, "ca.crt") + self.text(self.new, "ca.crt"))
            wait_for("both authorities", lambda: status(port, token, self.new, self.old) == 404)
            self.replace("tls.crt", self.text(self.new, "tls.crt"))
            wait_for("a look", lambda: "TLS files cannot be used" in fabric.api.log_text())
            self.assertEqual(status(port, token, self.old, self.old), 404)
            self.replace("tls.key", self.text(self.new, "tls.key"))
            wait_for("the new key", lambda: status(port, token, self.new, self.new) == 404)
            self.assertIsNone(status(port, token, self.new, self.old))
            self.replace("ca.crt", self.text(self.new, "ca.crt"))
            wait_for("the new authority", lambda: status(port, token, self.old, self.new) == 403)
            second = Fabric(0, (*api, f"--worker=127.0.0.1:{fabric.control_ports[0]}"), store=fabric.store)
            self.addCleanup(second.close)
            second.wait_workers(1)  # the worker's control stream has the new certificate
            fabric.workers[0].kill()
            fabric.start_worker(0)
            fabric.wait_workers(1)  # and the API shows and believes the new ones
        finally:
            stop.set()
            asking.join()
        self.assertEqual({(got[0], len(got[1]["data"]["result"])) for got in answers}, {(200, 2)})

    def test_https_of_the_api_shows_what_was_renewed_and_drops_no_connection(self):
        fabric = Fabric(1)
        self.addCleanup(fabric.close)
        fabric.api.stop()
        fabric.api_flags = [*self.flags("http", None)]
        fabric.up = lambda: "msg=serving" in fabric.api.log_text()[seen:]
        seen = len(fabric.api.log_text())
        fabric.start_api()
        kept = connect(fabric.api_port, self.old, self.old)

        def ask(connection):
            connection.request("GET", "/api/v1/query?query=1%2B1")
            answer = connection.getresponse()
            answer.read()
            return answer.status

        self.assertEqual(ask(kept), 200)
        for name in ("tls.crt", "tls.key"):
            self.replace(name, self.text(self.new, name))
        wait_for("the new one", lambda: status(fabric.api_port, "/livez", self.new, self.new) == 200)
        self.assertIsNone(status(fabric.api_port, "/livez", self.new, self.old))
        self.assertEqual(ask(kept), 200)


if __name__ == "__main__":
    unittest.main()
