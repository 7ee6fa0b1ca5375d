"""servers - a Prometheus and a Promfabric with the same data, on the loopback.

Prometheus gets its data by remote write, writes it into a block and is started anew on that: then it
holds series in the order of their labels, the only order of its storage that others can know."""
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import dataset  # noqa: E402
import remote_read  # noqa: E402
import remote_write  # noqa: E402
from ports import free_port  # noqa: E402

FEATURE = "promql-experimental-functions"


def wait_ready(url, process, seconds=60):
    for _ in range(seconds * 10):
        if process.poll() is not None:
            raise SystemExit(f"{url}: the server ended with {process.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{url}: not ready after {seconds} s")


class Servers:
    """@args has the programs (promfabric, prometheus) and how many workers."""

    def __init__(self, args, folder, series, flags=()):
        self.args, self.folder, self.processes = args, folder, []
        try:
            self.start_prometheus(os.path.join(folder, "head"))
            remote_write.send(self.theirs, series)
            self.start_prometheus(self.snapshot())
            stored = remote_read.fetch(self.theirs, "native_.*", min(s.points[0][0] for s in series),
                                       max(s.points[-1][0] for s in series))
            self.start_promfabric(dataset.as_stored(series, stored), flags)
        except BaseException:
            self.stop()
            raise

    def start_prometheus(self, data):
        config = os.path.join(self.folder, "prometheus.yml")
        open(config, "w", encoding="utf-8").close()
        port = free_port()
        self.theirs = f"http://127.0.0.1:{port}"
        self.start([self.args.prometheus, f"--config.file={config}", f"--storage.tsdb.path={data}",
                    f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y",
                    "--web.enable-remote-write-receiver", "--web.enable-admin-api",
                    f"--enable-feature={FEATURE},native-histograms"],
                   os.path.join(self.folder, "prometheus.log"), self.theirs + "/-/ready")

    def snapshot(self):
        """Have Prometheus write what it holds into a block, and end it; the folder of the block."""
        request = urllib.request.Request(self.theirs + "/api/v1/admin/tsdb/snapshot", method="POST")
        with urllib.request.urlopen(request, timeout=60) as response:
            name = json.load(response)["data"]["name"]
        self.stop()
        self.processes = []
        return os.path.join(self.folder, "head", "snapshots", name)

    def start_promfabric(self, series, flags):
        source = os.path.join(self.folder, "data.om")
        with open(source, "w", encoding="utf-8") as f:
            f.write(dataset.openmetrics(series))
        store = os.path.join(self.folder, "store")
        subprocess.run([self.args.promfabric, "import", "--store", store, source], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = free_port()
        self.ours = f"http://127.0.0.1:{port}"
        self.start([self.args.promfabric, "up", "--store", store, "--workers", str(self.args.workers),
                    "--ingest-nodes", "0", "--http-listen", f"127.0.0.1:{port}", *flags],
                   os.path.join(self.folder, "promfabric.log"), self.ours + "/readyz")

    def start(self, command, log, ready):
        environment = dict(os.environ, PROMFABRIC_ENABLE_FEATURE=FEATURE)
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
        self.processes.append(process)
        wait_ready(ready, process)

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
