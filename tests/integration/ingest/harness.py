"""harness.py - real ingest nodes on the loopback, for the tests in this folder."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from ports import free_port  # noqa: E402

BINARY = os.environ["PROMFABRIC_BINARY"]


def wait_for(what, condition, timeout=20.0):
    """Poll until condition() is true; the value it gave."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out waiting for {what}")
        time.sleep(0.02)


def connect(port, tls=None, timeout=30):
    """To a process of this machine, over TLS if there is an ssl.SSLContext."""
    if tls:
        return http.client.HTTPSConnection("127.0.0.1", port, timeout=timeout, context=tls)
    return http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)


class Node:
    """One ingest node; its folder outlives its processes."""

    def __init__(self, folder, name="a", args=(), data=None):
        self.name, self.args = name, list(args)
        self.data = pathlib.Path(data) if data else pathlib.Path(folder) / f"data-{name}"
        self.log_path = pathlib.Path(folder) / f"{name}.log"
        self.port, self.peer_port = free_port(), free_port()
        self.process, self.binary = None, BINARY
        self.tls, self.headers = None, {}  # an ssl.SSLContext if it is asked over TLS; sent with every request

    def start(self, *args, ready=True, env=None):
        self.log = open(self.log_path, "ab")
        self.process = subprocess.Popen(
            [self.binary, "ingest", "--data", self.data, "--ingest-id", self.name,
             "--http-listen", f"127.0.0.1:{self.port}", "--peer-listen", f"127.0.0.1:{self.peer_port}",
             *self.args, *args], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
            env={**os.environ, **(env or {})})
        if ready:
            wait_for(f"{self.name} to be ready", self.is_ready)
        return self

    def is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} ended: {self.log_text()[-2000:]}")
        try:
            return self.request("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
            self.log.close()

    def stop(self, timeout=30):
        """SIGTERM and wait; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"{self.name} did not end: {self.log_text()[-3000:]}")
        self.log.close()
        return self.process.returncode

    def log_text(self):
        return self.log_path.read_text(errors="replace")

    def raw(self, method, path, params=None, body=None, headers=None, timeout=30):
        connection = connect(self.port, self.tls, timeout)
        try:  # any end of a connection is an OSError
            query = "?" + urllib.parse.urlencode(params) if params else ""
            connection.request(method, path + query, body=body, headers={**self.headers, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def request(self, method, path, params=None, body=None, headers=None, timeout=30):
        """Status and the answer: JSON if it is some."""
        status, text, _ = self.raw(method, path, params, body, headers, timeout)
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def offer(self, queue, record, **params):
        return self.request("POST", f"/v1/queues/{queue}", params, record,
                            {"Content-Type": "application/octet-stream"})

    def offer_lines(self, queue, records, **params):
        return self.request("POST", f"/v1/queues/{queue}", params, b"\n".join(records),
                            {"Content-Type": "application/x-ndjson"})

    def read_all(self, queue):
        """Every record that is kept, as (offset, bytes)."""
        records, at = [], 0
        while True:
            status, answer = self.request("GET", f"/v1/queues/{queue}",
                                          {"max": 1000, **({"from": at} if at else {})})
            if status != 200:
                raise AssertionError((status, answer))
            records += [(r["offset"], data_of(r)) for r in answer["records"]]
            at = answer["next"]
            if at >= answer["end"]:
                return records

    def watch(self, start=None):
        """Events of meta, as (kind, id, data)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", "/v1/watch" + (f"?from={start}" if start else ""))
            answer = connection.getresponse()
            if answer.status != 200:
                raise AssertionError((answer.status, answer.read()))
            event = {}
            for line in answer:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    event[name] = value
                elif event:
                    yield event["event"], int(event.get("id", 0)), json.loads(event["data"])
                    event = {}
        finally:
            connection.close()

    def metric(self, name):
        for line in self.request("GET", "/metrics")[1].decode().splitlines():
            if line.split(" ")[0] == name:
                return float(line.split(" ")[1])
        raise AssertionError(f"no metric {name}")


def data_of(record):
    import base64
    return base64.b64decode(record["base64"]) if "base64" in record else record["data"].encode()


class NodeTest(unittest.TestCase):
    def setUp(self):
        # What a killed process wrote stays in memory as it would on a disk; and a sync costs nothing.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="promfabric-ingest-", dir=memory)
        self.addCleanup(shutil.rmtree, self.folder, True)

    def node(self, name="a", args=(), data=None):
        node = Node(self.folder, name, args, data)
        self.addCleanup(node.kill)
        return node
