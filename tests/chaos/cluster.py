"""cluster - real promfabric processes on loopback, with a faulty network between the roles."""
import os
import signal
import socket
import subprocess
import time
import urllib.request


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    """One role; it can be ended and started again under the same name and ports."""

    def __init__(self, name, command, log):
        self.name, self.command, self.log = name, command, log
        self.process = None

    def start(self):
        with open(self.log, "a", encoding="utf-8") as out:
            self.process = subprocess.Popen(self.command, stdout=out, stderr=out)

    def signal(self, number):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)

    def wait(self, seconds):
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None

    def restart_after_kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.start()

    def stop(self):
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        if self.wait(20) is None:
            self.signal(signal.SIGKILL)
            self.process.wait()

    def resident_kib(self):
        return self.proc_number("status", "VmRSS:")

    def threads(self):
        return self.proc_number("status", "Threads:")

    def fds(self):
        try:
            return len(os.listdir(f"/proc/{self.process.pid}/fd"))
        except OSError:
            return 0

    def proc_number(self, file, key):
        try:
            with open(f"/proc/{self.process.pid}/{file}", encoding="ascii") as f:
                return next(int(line.split()[1]) for line in f if line.startswith(key))
        except (OSError, StopIteration):
            return 0


class Worker(Process):
    def __init__(self, program, network, folder, store, index):
        http, control = free_port(), free_port()
        self.http_relay, self.control_relay = network.relay(http), network.relay(control)
        self.spool = os.path.join(folder, f"spool-{index}")
        os.makedirs(self.spool, exist_ok=True)
        super().__init__(f"worker-{index}", [
            program, "worker", "--store", store, "--worker-id", f"worker-{index}",
            "--http-listen", f"127.0.0.1:{http}", "--control-listen", f"127.0.0.1:{control}",
            "--advertise-url", f"http://127.0.0.1:{self.http_relay.port}", "--spool", self.spool,
            "--drain-timeout", "10s"], os.path.join(folder, f"worker-{index}.log"))

    def relays(self):
        return [self.http_relay, self.control_relay]


class Api(Process):
    def __init__(self, program, folder, store, workers, index):
        port = free_port()
        self.base = f"http://127.0.0.1:{port}"
        spool = os.path.join(folder, f"api-spool-{index}")
        command = [program, "api", "--store", store, "--http-listen", f"127.0.0.1:{port}",
                   "--spool", spool, "--query-timeout", "30s"]
        for worker in workers:
            command += ["--worker", f"127.0.0.1:{worker.control_relay.port}"]
        super().__init__(f"api-{index}", command, os.path.join(folder, f"api-{index}.log"))

    def wait_ready(self, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(self.base + "/readyz", timeout=1):
                    return
            except OSError:
                time.sleep(0.1)
        raise SystemExit(f"{self.name} is not ready after {seconds} s; see {self.log}")
