"""test_tls.py - keepers that ask for certificates and keys: ingest nodes, an API and other keepers show them, nobody else gets in."""
import os
import shutil
import ssl
import subprocess
import unittest

from certificates import make_certificate, make_certificates
from harness import BINARY, connect, wait_for
from keepers import Keeper, api
from test_blobs import NODES, NOW, BlobsTest

KEY = "the-operators-key"


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class Tls(BlobsTest):
    def setUp(self):
        super().setUp()
        self.ours, self.theirs = f"{self.folder}/ours", f"{self.folder}/theirs"
        for folder in (self.ours, self.theirs):
            os.mkdir(folder)
            make_certificates(folder)
        for name, text in (("keys", f"{KEY} *\nalpha team-a\n"), ("key", KEY)):
            with open(f"{self.ours}/{name}", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(text)

    def context(self, shows=None):
        context = ssl.create_default_context(cafile=f"{self.ours}/ca.crt")
        if shows:
            context.load_cert_chain(f"{shows}/tls.crt", f"{shows}/tls.key")
        return context

    def own(self, *flags):
        """Flags that name the certificate and its key."""
        return [f"--{flag}-{what}={self.ours}/tls.{what.replace('cert', 'crt')}" for flag in flags for what in ("cert", "key")]

    def ring(self, port, **params):
        params = {"key": f"{self.ours}/key", "ca": f"{self.ours}/ca.crt", "cert": f"{self.ours}/tls.crt",
                  "cert-key": f"{self.ours}/tls.key", **params}
        return f"ring://127.0.0.1:{port}?" + "&".join(f"{name}={value}" for name, value in params.items() if value)

    def fabric(self):
        """One ingest node, three keepers with three copies, an API; each asks for a key, keepers also for certificates."""
        ca, key = f"{self.ours}/ca.crt", f"{self.ours}/key"
        self.a = self.node("a", ["--bootstrap", "--segment-shards", "2", "--seal-age", "1s", f"--api-keys={self.ours}/keys",
                                 *self.own("http-tls", "keep-tls"), f"--keep-ca={ca}", f"--keep-key-file={key}"])
        self.store = self.ring(self.a.port)
        self.a.args += ["--store", self.store]
        self.a.tls, self.a.headers = self.context(), {"Authorization": f"Bearer {KEY}"}
        self.a.start()
        self.keepers = [Keeper(self.folder, f"k{i}", self.store, *self.own("http-tls", "control-tls", "keep-tls"),
                               f"--control-tls-client-ca={ca}", f"--keep-keys={self.ours}/keys",
                               f"--ingest-key={key}", f"--ingest-tls-ca={ca}") for i in range(3)]
        for keeper in self.keepers:
            keeper.tls, keeper.headers = self.context(self.ours), self.a.headers
            self.started(keeper)
            code, answer = self.a.request("POST", NODES, {"name": keeper.name, "url": keeper.url})
            self.assertEqual(code, 200, answer)
        code, answer = self.a.request("POST", "/v1/admin/ring", {"copies": 3})
        self.assertEqual(code, 200, answer)
        # Nobody but the leader of meta tells keepers the epochs, with its certificate and its key.
        wait_for("keepers to be told", lambda: all(k.metric("promfabric_keeper_told") for k in self.keepers), 60)
        self.api = self.started(api(self.folder, self.store, self.a, self.keepers, *self.own("control-tls"),
                                    f"--control-tls-ca={ca}", f"--ingest-key={key}", f"--ingest-tls-ca={ca}"))

    def asked(self, keeper, headers, shows, path="/v1/keep/blob?name=a.parquet&slot=0&epoch=1"):
        """The status; None: the keeper ended the handshake."""
        connection = connect(int(keeper.ports["http"]), self.context(shows))
        try:
            connection.request("GET", path, headers=headers)
            return connection.getresponse().status
        except (ssl.SSLError, ConnectionError):
            return None
        finally:
            connection.close()

    def test_blobs_come_and_go_between_those_that_show_a_certificate(self):
        self.fabric()
        self.write_and_seal(100, NOW)
        wait_for("three copies", lambda: len({frozenset(k.blobs()) for k in self.keepers}) == 1 and self.keepers[0].blobs(), 60)
        self.assertEqual(self.query(), [20 * 100 + 190])

        # A disk that is lost is filled again by other keepers, which ask for a certificate, too.
        lost = self.keepers[0]
        lost.kill()
        shutil.rmtree(lost.disk)
        lost.start()
        wait_for("it to have everything", lambda: set(lost.blobs()) == set(self.keepers[1].blobs()), 60)
        self.assertEqual(self.query(), [20 * 100 + 190])

        # A certificate that is renewed counts under running processes.
        make_certificate(self.ours, "tls", "localhost", "DNS:localhost,IP:127.0.0.1")
        self.write_and_seal(200, NOW + 1000)
        self.assertEqual(self.query(ts=NOW + 1000), [20 * 200 + 190])

    def verify(self, shows):
        """The exit code of a command that reads every blob from keepers."""
        own = {"cert": f"{shows}/tls.crt", "cert-key": f"{shows}/tls.key"} if shows else {"cert": None, "cert-key": None}
        done = subprocess.run([BINARY, "segments", "verify", "--store", self.ring(self.a.port, **own)],
                              capture_output=True, text=True, timeout=60)
        return done.returncode

    def test_nobody_else_gets_in(self):
        self.fabric()
        keeper, key = self.keepers[0], self.a.headers
        self.assertEqual(self.asked(keeper, key, self.ours), 404)  # there is no such blob
        self.assertEqual(self.asked(keeper, key, None), 403)
        self.assertIn(self.asked(keeper, key, self.theirs), (403, None))
        self.assertEqual(self.asked(keeper, {}, self.ours), 401)
        self.assertEqual(self.asked(keeper, {"Authorization": "Bearer alpha"}, self.ours), 403)
        self.write_and_seal(100, NOW)
        self.assertEqual(self.verify(self.ours), 0)
        self.assertEqual(self.verify(self.theirs), 3)
        self.assertEqual(self.verify(None), 3)

    def test_a_certificate_needs_its_key(self):
        for params, what in (({"cert-key": None}, "needs its key"), ({"cert": f"{self.ours}/none.crt"}, "none.crt")):
            done = subprocess.run([BINARY, "segments", "ls", "--store", self.ring(1, **params)],
                                  capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(what, done.stderr)


if __name__ == "__main__":
    unittest.main()
