"""keepers.py - real keepers, workers and APIs on the loopback, for the tests in this folder."""
import os
import pathlib
import re
import signal
import subprocess
import urllib.parse

from harness import BINARY, connect, wait_for


class Process:
    """One process of a role; it says on its first line where it listens."""

    def __init__(self, folder, role, name, *args):
        self.name, self.command = name, [BINARY, role, *map(str, args)]
        self.log_path = pathlib.Path(folder) / f"{name}.log"
        self.process = None
        self.ports = {}
        self.tls, self.headers = None, {}  # an ssl.SSLContext if it is asked over TLS; sent with every request

    def start(self, env=None):
        self.log = open(self.log_path, "ab")
        begin = self.log.tell()
        fixed = [f"--{kind}-listen=127.0.0.1:{port}" for kind, port in self.ports.items()]
        self.process = subprocess.Popen(self.command + fixed, stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})

        def line():
            if self.process.poll() is not None:
                raise AssertionError(f"{self.name} ended: {self.log_text()[-3000:]}")
            text = self.log_path.read_bytes()[begin:].decode(errors="replace")
            return re.search(r"^listening .*\n|msg=serving .*\n", text, re.M)
        said = wait_for(f"{self.name} to listen", line, 30).group()
        self.ports = dict(re.findall(r"(\w+)=127\.0\.0\.1:(\d+)", said))
        if said.startswith("msg"):
            self.ports = {"http": re.search(r"port=(\d+)", said).group(1)}
        return self

    def log_text(self):
        return self.log_path.read_text(errors="replace")

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        if self.process:
            self.process.wait()
            self.log.close()
            self.process = None

    def stop(self, timeout=30):
        self.process.terminate()
        code = self.process.wait(timeout)
        self.log.close()
        self.process = None
        return code

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.ports['http']}"

    def raw(self, method, path, params=None, body=None, headers=None, timeout=30):
        connection = connect(int(self.ports["http"]), self.tls, timeout)
        try:
            query = "?" + urllib.parse.urlencode(params) if params else ""
            connection.request(method, path + query, body, {**self.headers, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def metric(self, name):
        text = self.raw("GET", "/metrics")[1].decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if line.startswith((name + " ", name + "{")))


class Keeper(Process):
    def __init__(self, folder, name, store, *args):
        self.disk = pathlib.Path(folder) / f"disk-{name}"
        super().__init__(folder, "worker", name, "--worker-id", name, "--store", store, "--keep", self.disk,
                         "--spool", pathlib.Path(folder) / f"spool-{name}", "--keep-reserve", "1MiB", "--keep-mend-every", "1s",
                         "--log-level", "debug", *args)
        self.ports = {"http": 0, "control": 0}

    def tell(self, epoch=1):
        """As the leader of meta does it: the epochs of all slots."""
        body = bytes([1, 0x80, 0x08]) + varint(epoch) * 1024
        return self.raw("POST", "/v1/keep/tell", body=body)

    def blobs(self):
        """Names and files of what it holds."""
        root = self.disk / "blobs"
        return {str(f.relative_to(root))[5:].rsplit("~", 1)[0]: f for f in root.rglob("*") if f.is_file()}


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def api(folder, store, ingest, workers, *args, name="api"):
    process = Process(folder, "api", name, "--store", store, "--ingest", f"127.0.0.1:{ingest.port}",
                      *[f"--worker=127.0.0.1:{w.ports['control']}" for w in workers], *args)
    process.ports = {"http": 0}
    return process
