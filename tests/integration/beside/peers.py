"""peers.py - a real Prometheus and senders beside a cluster of ours, and whether both answer alike."""
import http.server
import json
import math
import os
import pathlib
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
from harness import free_port, wait_for  # noqa: E402

PEERS = pathlib.Path(os.environ.get("PROMFABRIC_PEERS", "/nowhere")) / "usr/bin"
NODE_EXPORTER = pathlib.Path(os.environ.get("PROMFABRIC_NODE_EXPORTER", "/nowhere")) / "usr/bin/prometheus-node-exporter"


class Program:
    """A process of somebody else's, its log in a file."""

    def __init__(self, folder, name, *command):
        self.log_path = pathlib.Path(folder) / f"{name}.log"
        self.log = open(self.log_path, "wb")
        self.process = subprocess.Popen([str(c) for c in command], stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL, cwd=folder)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def log_text(self):
        return self.log_path.read_text(errors="replace")


def get(port, path, params=None, timeout=30):
    """Status and document of a GET; (0, reason) if nobody answers."""
    url = f"http://127.0.0.1:{port}{path}" + ("?" + urllib.parse.urlencode(params) if params else "")
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except OSError as error:
        return 0, str(error)


def metrics(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return answer.read().decode().splitlines()


def metric(port, name):
    """Sum of a metric over its labels."""
    return sum(float(line.rsplit(" ", 1)[1]) for line in metrics(port)
               if line.split("{")[0].split(" ")[0] == name)


class Prometheus(Program):
    """With a receiver, and what @config scrapes and writes."""

    def __init__(self, folder, config, *flags):
        self.port = free_port()
        path = pathlib.Path(folder) / "prometheus.yml"
        path.write_text(config.replace("SELF", f"127.0.0.1:{self.port}"))
        super().__init__(folder, "prometheus", PEERS / "prometheus", f"--config.file={path}",
                         f"--web.listen-address=127.0.0.1:{self.port}", f"--storage.tsdb.path={folder}/tsdb",
                         "--web.enable-remote-write-receiver", *flags)
        try:
            wait_for("Prometheus", self.ready, 60)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.log_text()[-2000:]}") from error

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=2):
                return True
        except OSError:
            return False


class Target(http.server.BaseHTTPRequestHandler):
    """Counters that reset, gauges, a histogram, series that come and go: values follow from the scrape's number."""
    series = 60
    scrapes = 0

    def do_GET(self):
        Target.scrapes += 1
        n, lines = Target.scrapes, []
        for i in range(self.series):
            lines.append(f'side_requests_total{{i="{i}",zone="z{i % 5}"}} {n * (i + 1) % (997 + i)}')  # resets
            lines.append(f'side_level{{i="{i}",zone="z{i % 5}"}} {((n * 7919 + i * 104729) % 10007) / 7.0!r}')
            if (n + i) // 10 % 3 != 0:
                lines.append(f'side_comes_and_goes{{i="{i}"}} {n}')
        for le, count in (("0.1", n * 3), ("0.5", n * 5), ("1", n * 6), ("+Inf", n * 7)):
            lines.append(f'side_seconds_bucket{{le="{le}"}} {count}')
        lines += [f"side_seconds_sum {n * 2.75}", f"side_seconds_count {n * 7}",
                  f"side_odd {('NaN', '+Inf', '-Inf', '-0', '1e-320')[n % 5]}", f"side_scrapes_total {n}"]
        body = ("\n".join(lines) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class TargetServer(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # a scrape that was given up: part of the game


def start_target():
    server = TargetServer(("127.0.0.1", 0), Target)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def start_node_exporter(folder):
    port = free_port()
    program = Program(folder, "node-exporter", NODE_EXPORTER, f"--web.listen-address=127.0.0.1:{port}")
    return program, port


def canonical(data):
    """{labels: document} of an answer; order of series aside, every label, time and value as it was sent."""
    if data["resultType"] in ("scalar", "string"):
        return {"": data["result"]}
    return {json.dumps(s.pop("metric"), sort_keys=True): s for s in data["result"]}


def same_but_for_last_bits(a, b):
    """Of documents: sums in another order, and functions that another library computes, differ by that."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_but_for_last_bits, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_but_for_last_bits(a[k], b[k]) for k in a)
    if isinstance(a, str) and isinstance(b, str):
        try:
            return a == b or math.isclose(float(a), float(b), rel_tol=1e-9)
        except ValueError:
            return False
    return a == b


class Pair:
    """Prometheus and us, asked the same."""

    def __init__(self, theirs, ours, patience=60):
        self.theirs, self.ours, self.patience = theirs, ours, patience
        self.asked = self.series = self.failed = self.last_bits = 0

    def ask(self, port, path, params):
        """Data; an error of ours that says so (a node was killed) is tried again, within patience."""
        end = time.monotonic() + self.patience
        while True:
            status, answer = get(port, path, params)
            if status == 200:
                return answer["data"]
            if status not in (503, 504) or time.monotonic() > end:
                raise AssertionError(f"{params}: {status}: {answer}")
            self.failed += 1
            time.sleep(0.2)

    def difference(self, path, params):
        """What differs, "" if nothing does."""
        want, have = (canonical(self.ask(port, path, params)) for port in (self.theirs, self.ours))
        self.asked += 1
        self.series += len(want)
        if want == have:
            return ""
        if same_but_for_last_bits(want, have):
            self.last_bits += 1
            return ""
        labels = next(k for k in sorted({**want, **have}) if want.get(k) != have.get(k))
        return (f"{params}: Prometheus has {len(want)} series, we {len(have)}; {labels} is "
                f"{str(want.get(labels))[:300]} there and {str(have.get(labels))[:300]} here")

    def query(self, expr, at):
        return self.difference("/api/v1/query", {"query": expr, "time": f"{at:.3f}"})

    def query_range(self, expr, start, end, step):
        return self.difference("/api/v1/query_range", {"query": expr, "start": f"{start:.3f}", "end": f"{end:.3f}",
                                                       "step": step})
