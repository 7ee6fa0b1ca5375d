"""store - where the segments are: a folder, or a bucket of a real S3 server behind a proxy that fails.

The server is OpenStack Swift, started as tests/integration/s3/run does it, on the host `store`. Workers
and APIs reach it through FaultyProxy alone."""
import contextlib
import importlib.machinery
import importlib.util
import os
import pathlib
import random
import socketserver
import subprocess
import threading
import time
import urllib.request

S3_RUN = pathlib.Path(__file__).resolve().parent.parent / "integration" / "s3" / "run"
STORE_PORT = 9000
DATA = ["--quiet", "--shards", "8", "--window", "1h", "--range", "6h", "--end", "2026-01-31T12:00:00Z"]
DATA_END = 1769860800


def load_s3():
    loader = importlib.machinery.SourceFileLoader("s3_run", str(S3_RUN))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("s3_run", loader))
    loader.exec_module(module)
    module.START_SECONDS = 240  # a busy machine is no reason to do without
    # Requests of an API whose clock is off are as good as others here.
    module.PROXY_CONF = module.PROXY_CONF.replace("s3_acl = false", "s3_acl = false\nallowable_clock_skew = 100000000")
    return module


def write_data(program, url, env):
    done = subprocess.run([program, "demo-data", "--store", url] + DATA, env=env, capture_output=True, text=True,
                          timeout=900)
    if done.returncode != 0:
        raise RuntimeError(f"demo-data into {url}: {done.stderr.strip()}")


class Store:
    """What both kinds can do."""

    def import_text(self, program, text, path):
        """Samples in text become segments."""
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        self.run(program, "import", "--quiet", "--store", self.url, path)

    def count(self, program):
        """Segments in it."""
        return self.run(program, "segments", "ls", "--store", self.url).count(".parquet")

    def run(self, *command):
        with self.host.inside() if self.host else contextlib.nullcontext():
            done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=900)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command[1:])}: {done.stderr.strip()}")
        return done.stdout


class LocalStore(Store):
    kind, host = "local", None

    def __init__(self, program, folder):
        self.url, self.env = folder, clean_env()
        write_data(program, folder, self.env)

    def stop(self):
        pass


def clean_env():
    return {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "PROMFABRIC_")) and
            k.lower() not in ("http_proxy", "https_proxy", "all_proxy")}


def install_swift():
    """If it can be had. Inside a host there is no network to get it from."""
    try:
        load_s3().install()
    except SystemExit:
        pass  # whoever needs it says so


class SwiftStore(Store):
    kind = "s3"

    def __init__(self, program, folder, host, spawner):
        s3 = load_s3()
        if not s3.installed():
            raise RuntimeError("Swift cannot be installed")
        self.s3, self.host, self.proxy = s3, host, None
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.swift = s3.Swift(self.folder)
        self.swift.run = lambda kind, command: self.swift.processes.append(spawner.spawn(
            host, command, str(self.folder / f"{kind}.log"), self.swift.env()))
        with host.inside():
            self.swift.start()
            self.make_bucket()
            self.proxy = FaultyProxy(s3, host, self.swift.ports["proxy"])
        threading.Thread(target=self.serve, daemon=True).start()
        self.url = "s3://segments/chaos"
        port = self.proxy.server_address[1]
        self.env = {**clean_env(), "AWS_ACCESS_KEY_ID": "test:tester", "AWS_SECRET_ACCESS_KEY": "testing",
                    "AWS_REGION": "test-region", "AWS_ENDPOINT_URL_S3": f"http://{host.ip}:{port}",
                    "no_proxy": "*"}
        with host.inside():
            write_data(program, self.url, self.env)

    def serve(self):
        self.host.settle()
        self.proxy.serve_forever()

    def make_bucket(self):
        base = f"http://127.0.0.1:{self.swift.ports['proxy']}"
        ask = urllib.request.Request(base + "/auth/v1.0", headers={
            "X-Auth-User": "test:tester", "X-Auth-Key": "testing"})
        with urllib.request.urlopen(ask, timeout=30) as answer:
            token = answer.headers["X-Auth-Token"]
        put = urllib.request.Request(base + "/v1/AUTH_test/segments", method="PUT", headers={"X-Auth-Token": token})
        urllib.request.urlopen(put, timeout=30).close()

    def stop(self):
        if self.proxy:
            self.proxy.shutdown()
            self.proxy.server_close()
        for process in self.swift.processes:
            process.kill()
            process.wait()


def handler_of(s3):
    class Handler(s3.ProxyHandler):
        def read_head(self, stream):
            head = s3.ProxyHandler.read_head(stream)
            self.server.here.listing = bool(head) and "?" in head[0]
            return head
    return Handler


class FaultyProxy(socketserver.ThreadingTCPServer):
    """Fails a share of the requests, as long as it is told to. Modes: those of the S3 test's proxy
    (status503, lost: answered 500 though done, reset, cut, flip, stall) and slow. Listings are never
    flipped: they carry no checksum, so nobody could tell."""
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, s3, host, target_port):
        super().__init__((host.ip, host.port(STORE_PORT)), handler_of(s3))
        self.here = threading.local()
        self.target_port, self.lock = target_port, threading.Lock()
        self.rng = random.Random(1)
        self.heal()
        self.seen = 0

    def fail(self, mode, share, delay_s=0.0):
        with self.lock:
            self.mode, self.share, self.delay_s = mode, share, delay_s

    def heal(self):
        with self.lock:
            self.mode, self.share, self.delay_s = "", 0.0, 0.0

    def next_fault(self, _method):
        with self.lock:
            self.seen += 1
            mode = self.mode if self.mode and self.rng.random() < self.share else ""
            delay = self.delay_s
        if mode == "slow":
            time.sleep(delay)
            return ""
        return "" if mode == "flip" and self.here.listing else mode

    def handle_error(self, request, client_address):
        pass  # a server or a client that went away: part of the game
