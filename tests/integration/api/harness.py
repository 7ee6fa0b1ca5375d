"""harness.py - real promfabric processes on the loopback, for the tests in this folder."""
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
LOADER = os.environ["PROMFABRIC_LOADER"]
START = 1_700_000_400  # a multiple of 300 s, so that windows and steps fall on round times
STEP = 15
# Keeps workers busy for minutes over some hours by the second, and the API not at all: each step looks
# at 360,000 values, and no kernel spares itself that.
LONG = "sum(stddev_over_time(rate(http_requests_total[5m])[2h:20ms]))"


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


class Process:
    """One promfabric process whose log goes to a file."""

    def __init__(self, folder, name, args, env=None, wrapper=(), binary=None):
        self.name = name
        self.log_path = pathlib.Path(folder) / f"{name}.log"
        self.log = open(self.log_path, "ab")
        self.args = [*wrapper, binary or BINARY, *args]
        self.process = subprocess.Popen(self.args, stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})

    @property
    def pid(self):
        return self.process.pid

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()

    def stop(self, timeout=20):
        """SIGTERM and wait; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError(f"{self.name} did not end; log:\n{self.log_text()[-3000:]}")
        self.log.close()
        return self.process.returncode

    def log_text(self):
        return self.log_path.read_text(errors="replace")


class Fabric:
    """An API and workers over one store, its own unless it is given one."""
    api_wrapper = ()  # what comes in front of the API's command line

    def __init__(self, workers=2, api_flags=(), worker_flags=(), start_workers=True, store=None):
        self.folder = tempfile.mkdtemp(prefix="pf-it-")
        self.store = store or os.path.join(self.folder, "store")
        os.makedirs(self.store, exist_ok=True)
        self.api_port = free_port()
        self.worker_flags = list(worker_flags)
        self.control_ports = [free_port() for _ in range(workers)]
        self.http_ports = [free_port() for _ in range(workers)]
        self.workers = [None] * workers
        self.api_flags = list(api_flags)
        self.api = None
        if start_workers:
            for i in range(workers):
                self.start_worker(i)
        self.start_api()

    def start_api(self, binary=None):
        self.api = Process(self.folder, "api", [
            "api", f"--store={self.store}", f"--http-listen=127.0.0.1:{self.api_port}",
            f"--spool={self.folder}/spool-api", "--log-level=debug",
            "--small-scan=0s",  # little data, and still many work items
            *[f"--worker=127.0.0.1:{port}" for port in self.control_ports], *self.api_flags],
            wrapper=self.api_wrapper, binary=binary)
        wait_for("the API", lambda: self.up() or self.died())

    def died(self):
        if self.api.process.poll() is not None:
            raise AssertionError("the API ended:\n" + self.api.log_text()[-3000:])
        return False

    def up(self):
        try:
            return self.get("/readyz", timeout=2)[0] == 200
        except OSError:
            return False

    def start_worker(self, index, flags=(), env=None, binary=None):
        self.workers[index] = Process(self.folder, f"worker-{index}", [
            "worker", f"--store={self.store}", f"--worker-id=worker-{index}",
            f"--control-listen=127.0.0.1:{self.control_ports[index]}",
            f"--http-listen=127.0.0.1:{self.http_ports[index]}",
            f"--spool={self.folder}/spool-{index}", "--log-level=debug",
            *self.worker_flags, *flags], env, binary=binary)

    def wait_workers(self, count, timeout=20.0):
        wait_for(f"{count} workers", lambda: self.scaling()["workers"]["accepting"] == count,
                 timeout)

    def close(self):
        """End everything; what sanitizers or asserts said fails the test."""
        codes = {}
        for process in [self.api, *self.workers]:
            if process is not None:
                codes[process.name] = process.stop()
        problems = []
        for path in pathlib.Path(self.folder).glob("*.log"):
            text = path.read_text(errors="replace")
            for mark in ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error:",
                         "WARNING: ThreadSanitizer", "Assertion"):
                if mark in text:
                    problems.append(f"{path.name}: {mark}\n{text[text.index(mark):][:3000]}")
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not problems, "\n".join(problems)
        return codes

    # --- HTTP ---

    def request(self, method, path, params=None, body=None, headers=None, timeout=60):
        """(status, headers, body bytes) of one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.api_port, timeout=timeout)
        if params is not None:
            path += "?" + urllib.parse.urlencode(params, doseq=True)
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response.status, dict(response.getheaders()), data

    def get(self, path, params=None, **kwargs):
        return self.request("GET", path, params, **kwargs)

    def json(self, path, params=None, **kwargs):
        status, _, body = self.get(path, params, **kwargs)
        return status, json.loads(body)

    def data(self, path, params=None, **kwargs):
        status, answer = self.json(path, params, **kwargs)
        assert status == 200 and answer["status"] == "success", (status, answer)
        return answer["data"]

    def query(self, expr, at, **params):
        return self.data("/api/v1/query", {"query": expr, "time": at, **params})

    def query_range(self, expr, start, end, step, **params):
        return self.data("/api/v1/query_range",
                         {"query": expr, "start": start, "end": end, "step": step, **params})

    def scaling(self):
        return self.json("/monitor/scaling")[1]

    def metric(self, name):
        for line in self.get("/metrics")[2].decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(f"no metric {name}")

    def events(self, expr, start, end, step, timeout=60, **more):
        """(status, raw bytes, list of events) of the event stream."""
        body = json.dumps({"q": expr, "s": start, "e": end, "step": step, **more})
        status, _, data = self.request("POST", "/api/v1/metrics/query", body=body,
                                       headers={"Content-Type": "application/json"},
                                       timeout=timeout)
        return status, data, parse_events(data)


def parse_events(data):
    events = []
    for block in data.decode().split("\n\n"):
        for line in block.splitlines():
            if line.startswith("data: "):
                events.append(json.loads(line[6:]))
            elif line and not line.startswith(":"):
                raise AssertionError(f"stray line in event stream: {line!r}")
    return events


def without_comments(raw):
    """An event stream without its keep-alives."""
    return b"".join(block + b"\n\n" for block in raw.split(b"\n\n")
                    if block and not block.startswith(b":"))


def check_one_end(events):
    """Exactly one terminal event, and it is the last; its status."""
    ends = [i for i, event in enumerate(events) if event["type"] == "done"]
    errors = [i for i, event in enumerate(events) if event["type"] == "error"]
    assert ends == [len(events) - 1], [event["type"] for event in events[-5:]]
    status = events[-1]["data"]["status"]
    assert status in ("ok", "error")
    assert len(errors) == (1 if status == "error" else 0), errors
    if errors:
        assert errors[0] == len(events) - 2
    return status


def load(store, lines, tenant="default", shards=4, start=START, step=STEP, window=7200):
    subprocess.run([LOADER, store, tenant, str(shards), str(start * 1000), str(step * 1000),
                    str(window * 1000)], input="\n".join(lines).encode(), check=True)


def standard_lines(instances=12, length=480):
    """Counters, gauges and a metric that stops: two hours at 15 s."""
    lines = []
    for i in range(instances):
        job = "api" if i % 2 else "web"
        lines.append(f'http_requests_total{{job="{job}",instance="i{i}"}} 0+{i + 1}x{length}')
        lines.append(f'temperature{{job="{job}",instance="i{i}"}} {20 + i}-0.25x{length}')
    lines.append(f'short_lived{{job="web"}} 1x20 stale')
    lines.append(f'up{{job="web"}} 1x{length}')
    lines.append(f'up{{job="api"}} 0x{length}')
    return lines


class FabricTest(unittest.TestCase):
    """A fabric with standard data, shared by the classes of a file that ask for the same one."""
    workers = 2
    api_flags = ()
    worker_flags = ()
    lines = standard_lines()
    shared = {}

    @classmethod
    def setUpClass(cls):
        key = (cls.workers, cls.api_flags, cls.worker_flags, tuple(cls.lines))
        if key not in FabricTest.shared:
            fabric = Fabric(cls.workers, cls.api_flags, cls.worker_flags)
            FabricTest.shared[key] = fabric
            unittest.addModuleCleanup(close_shared, key)
            load(fabric.store, cls.lines)
            fabric.wait_workers(cls.workers)
        cls.fabric = FabricTest.shared[key]


def close_shared(key):
    FabricTest.shared.pop(key).close()
