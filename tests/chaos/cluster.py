"""cluster - real promfabric processes, each on its host, that can be ended, stalled and started again."""
import contextlib
import http.client
import json
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import compact
from ageing import LIMITS
from proxy import Network

HTTP_PORT, CONTROL_PORT, RELAYED = 8080, 7000, 100
WRITE_PORT, PEER_PORT = 8083, 8084
DISK_MIB = 24
JOBS_DISK_MIB = 80  # beside it: a worker takes no background job where less is free
KEEP_DISK_MIB = 96  # beside both, of a storage node
INGEST_DISK_MIB = 192
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


class Spawner(threading.Thread):
    """Starts every process. They die with this thread, that is with the driver, whatever ends it."""

    def __init__(self):
        super().__init__(daemon=True)
        self.requests = queue.Queue()
        self.prefix = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        self.start()

    def run(self):
        while True:
            job, reply = self.requests.get()
            try:
                reply.put(job())
            except OSError as e:
                reply.put(e)

    def do(self, job):
        reply = queue.Queue()
        self.requests.put((job, reply))
        result = reply.get()
        if isinstance(result, OSError):
            raise result
        return result

    def spawn(self, host, command, log, env=None):
        def start():
            with host.inside(), open(log, "a", encoding="utf-8") as out:
                return subprocess.Popen(self.prefix + command, stdout=out, stderr=out,
                                        stdin=subprocess.DEVNULL, env=env,
                                        start_new_session=True)  # Ctrl-C is the driver's business
        return self.do(start)


class Process:
    """One role; it can be ended and started again under the same name and ports."""

    def __init__(self, spawner, host, name, command, log, env):
        self.spawner, self.host, self.name, self.command = spawner, host, name, command
        self.log, self.env, self.process = log, env, None
        self.busy = threading.Lock()  # held by the fault that has it in hand
        self.downs = []               # [from, to]: when it was not there, monotonic

    def start(self, env=None):
        self.told = False  # a second signal would end it at once
        self.process = self.spawner.spawn(self.host, self.command, self.log, {**self.env, **(env or {})})

    def start_shifted(self, shift):
        """Start with the wall clock off by @shift, as faketime writes it; the monotonic one stays."""
        self.start({"LD_PRELOAD": FAKETIME, "FAKETIME": shift, "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                    "DONT_FAKE_MONOTONIC": "1"})

    def alive(self):
        return self.process.poll() is None

    def signal(self, number):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)

    def terminate(self):
        """SIGTERM, once the process can tell it from others: until main() it just ends any process."""
        end = time.monotonic() + 10
        while self.process and self.process.poll() is None and time.monotonic() < end:
            with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as f:
                blocked = next(line for line in f if line.startswith("SigBlk:"))
            if int(blocked.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
                break
            time.sleep(0.01)
        self.signal(signal.SIGTERM)

    def wait(self, seconds):
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()
        for name in (f"faketime_shm_{self.process.pid}", f"sem.faketime_sem_{self.process.pid}"):  # of start_shifted
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join("/dev/shm", name))

    def tell_to_stop(self):
        if not self.told:
            self.told = True
            self.signal(signal.SIGCONT)
            self.terminate()

    def stop(self):
        """Exit code of an orderly end, None if it had to be killed."""
        self.tell_to_stop()
        code = self.wait(40)
        if code is None:
            self.kill()
        return code

    def base(self):
        return f"http://{self.host.ip}:{self.http_port}"

    def metric(self, name):
        """Sum of a metric over its labels; None if it cannot be had."""
        try:
            with urllib.request.urlopen(self.base() + "/metrics", timeout=20) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            return None
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines
                   if line.split("{")[0].split(" ")[0] == name)

    def wait_ready(self, seconds=90):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(self.base() + "/readyz", timeout=2):
                    return
            except OSError:
                if not self.alive():
                    break
                time.sleep(0.1)
        raise RuntimeError(f"{self.name} is not ready after {seconds} s; see {self.log}")

    def sizes(self):
        return {"rss_mib": self.proc_number("VmRSS:") / 1024, "fds": self.fds(),
                "threads": self.proc_number("Threads:")}

    def fds(self):
        try:
            return len(os.listdir(f"/proc/{self.process.pid}/fd"))
        except OSError:
            return 0

    def proc_number(self, key):
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
                return next(int(line.split()[1]) for line in f if line.startswith(key))
        except (OSError, StopIteration):
            return 0


class Worker(Process):
    """A worker; with @relayed a relay stands before both of its ports. A storage node if the store is the ring."""

    def __init__(self, spawner, program, host, folder, store, index, relayed):
        http, control = host.port(HTTP_PORT), host.port(CONTROL_PORT)
        self.http_port = http
        self.network, self.relays = None, []
        http_seen, self.control_seen = http, control
        if relayed:
            self.network = Network(host)
            self.relays = [self.network.relay((host.ip, port), port + RELAYED if host.fd else 0)
                           for port in (http, control)]
            http_seen, self.control_seen = (relay.port for relay in self.relays)
        self.disk = os.path.join(folder, f"disk-{index}")
        self.spool = os.path.join(self.disk, "spool")
        self.keep = os.path.join(self.disk, "keep")
        self.own_disk = host.hosts.disk(self.disk, DISK_MIB + JOBS_DISK_MIB + KEEP_DISK_MIB * (store.kind == "ring"))
        os.makedirs(self.spool, exist_ok=True)
        self.url = f"http://{host.ip}:{http_seen}"
        super().__init__(spawner, host, f"worker-{index}", [
            program, "worker", "--store", store.url, "--worker-id", f"worker-{index}",
            "--http-listen", f"{host.ip}:{http}", "--control-listen", f"{host.ip}:{control}",
            "--advertise-url", self.url, "--spool", self.spool,
            "--disk-budget", f"{DISK_MIB - 4}MiB", "--disk-floor", "8MiB", "--slots", "2",
            "--artifact-ttl", "60s", "--artifact-ttl-after-ack", "2s", "--drain-timeout", "15s", "--background-rate", compact.RATE,
            # Small artifacts are files, which faults can damage; one worker has them in memory.
            "--artifact-memory", "32MiB" if index == 1 else "0B",
            *(["--keep", self.keep, "--keep-reserve", "4MiB", "--keep-mend-every", "3s"] if store.kind == "ring" else [])],
            os.path.join(folder, f"worker-{index}.log"), store.env)

    def sizes(self):
        """Without the segments that it holds open, as many as the store comes to have: they have a bound of their own."""
        sizes = super().sizes()
        return {**sizes, "fds": sizes["fds"] - int(self.metric("promfabric_worker_segment_readers") or 0)}

    def files(self, kind):
        """Paths in the spool: artifacts or cached segments."""
        return [os.path.join(where, name) for where, _, names in os.walk(self.spool) for name in names
                if (os.sep + "segments" + os.sep in where + os.sep) == (kind == "segment")]


class Api(Process):
    def __init__(self, spawner, program, host, folder, store, workers, ingests, index, timeout_s, compact_flags):
        self.http_port = host.port(HTTP_PORT)
        self.disk = os.path.join(folder, f"api-disk-{index}")
        self.own_disk = host.hosts.disk(self.disk, DISK_MIB)
        self.clock = os.path.join(folder, f"api-{index}.clock")
        limits = os.path.join(folder, "limits")
        with open(limits, "w", encoding="ascii") as f:
            f.write(LIMITS)
        command = [program, "api", "--store", store.url, "--http-listen", f"{host.ip}:{self.http_port}",
                   "--spool", os.path.join(self.disk, "spool"), "--query-timeout", f"{timeout_s}s",
                   "--worker-wait", "10s", "--drain-timeout", "15s", "--catalog-refresh", "5s",
                   "--tenant-limits", limits, "--retention-slack", f"{timeout_s + 10}s",
                   *compact_flags,
                   # Here workers are killed and links broken all the time, whatever they read.
                   "--quarantine-after", "0",
                   # The one that is restarted keeps artifacts in files, so that its disk matters.
                   *(["--artifact-memory", "0B"] if index else [])]
        for worker in workers:
            command += ["--worker", f"{worker.host.ip}:{worker.control_seen}"]
        for node in ingests:
            command += ["--ingest", f"{node.host.ip}:{node.http_port}"]
        super().__init__(spawner, host, f"api-{index}", command, os.path.join(folder, f"api-{index}.log"),
                         store.env)


class Ingest(Process):
    """An ingest node. `meet` tells it of the others before it starts, `found` makes it a cluster of its own."""

    def __init__(self, spawner, program, host, folder, store, index, timeout_s, seal_s):
        self.http_port = store.ports[host.name] if store.kind == "ring" else host.port(WRITE_PORT)
        self.peer_port = host.port(PEER_PORT)
        self.disk = os.path.join(folder, f"ingest-disk-{index}")
        self.own_disk = host.hosts.disk(self.disk, INGEST_DISK_MIB)
        super().__init__(spawner, host, f"ingest-{index}", [
            program, "ingest", "--store", store.url, "--ingest-id", f"ingest-{index}",
            "--data", os.path.join(self.disk, "data"), "--http-listen", f"{host.ip}:{self.http_port}",
            "--peer-listen", f"{host.ip}:{self.peer_port}", "--partitions", "2", "--segment-shards", "2",
            "--seal-age", f"{seal_s}s", "--query-timeout", f"{2 * timeout_s}s", "--log-file-bytes", "1MiB",
            "--disk-reserve", "4MiB", "--drain-timeout", "15s",
            # Clocks are days off here: what a node then thinks too new or too old is taken all the same.
            "--future-limit", "3000h", "--out-of-order", "3000h", "--floor-age", "3000h"],
            os.path.join(folder, f"ingest-{index}.log"), store.env)

    def meet(self, others):
        for other in others:
            self.command += ["--peer", f"{other.name}={other.host.ip}:{other.peer_port}"]

    def found(self):
        self.command.append("--bootstrap")
        self.start()
        self.command.pop()

    def get(self, path):
        return self.post(path, None)[1]

    def post(self, path, body=b"", timeout=10):
        """Status and document; (0, {}) if there is no answer."""
        request = urllib.request.Request(self.base() + path, data=body)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as e:
            return e.code, {}
        except (OSError, ValueError, http.client.HTTPException):
            return 0, {}

    def change(self, change, other):
        """Of the members, until it is done. One that was done though nobody said so is refused when asked again."""
        end, asked = time.monotonic() + 180, 0
        while (status := self.post(f"/v1/members?change={change}&name={other.name}")[0]) != 200:
            if status in (400, 404, 409) and asked:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"{other.name}: no {change} within 180 s; see {self.log}")
            asked += status != 0
            time.sleep(0.1)

    def voters(self):
        """Incarnations that vote, by queue; None if it does not say."""
        queues = self.get("/v1/queues").get("queues", [])
        known = {q["name"]: self.get(f"/v1/queues/{q['name']}/status").get("members", []) for q in queues}
        return {name: {m["incarnation"] for m in members if m["role"] == "voter"}
                for name, members in known.items()} or None

    def leads(self):
        """How many queues it leads; 0 if it does not say."""
        return self.metric("promfabric_ingest_queues_led") or 0

    def unsealed(self):
        """Ranges that are not in the store yet, of all partitions; None if it does not say."""
        body = json.dumps({"tenant": "default", "min_ts": -(1 << 58), "max_ts": 1 << 58}).encode()
        status, answer = self.post("/v1/heads/status", body, 20)
        return sum(len(p["ranges"]) for p in answer["partitions"]) if status == 200 else None
