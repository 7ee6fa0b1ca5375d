"""accept.py - the same remote-write requests to Promfabric, Prometheus and VictoriaMetrics, one at a time.

usage: accept.py --promfabric P --prometheus P --victoria-metrics P --vmagent P [--series N] [--scrapes N]
                 [--connections N] [--runs N] [--only NAME] [--perf FILE]

vmagent (version 1.0) and Prometheus (2.0) scrape a target of ours, whose series have 10 labels and change at
each scrape, and send to a recorder. What was recorded is then sent to each server in turn, new and empty on
a tmpfs, over kept connections. Figures: processor time of the server per sample, which a busy machine changes
little; wall time; the most memory; bytes on disk. Prometheus writes a log and does not wait for it (no
sync); VictoriaMetrics buffers in memory; Promfabric answers when the request is synced."""
import argparse
import http.client
import http.server
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from ports import free_port  # noqa: E402

V2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"
TICKS = os.sysconf("SC_CLK_TCK")


class Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass


def serve(handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def make_target(series):
    heads = [f'bench_metric_{i % 50}{{path="/api/v1/thing/{i % 100}",method="{("GET", "POST")[i % 2]}",code="200",'
             f'zone="zone-{i % 7}",pod="pod-{i // 50:06d}",version="1.2.3",team="team-{i % 13}"}} '
             for i in range(series)]

    class Target(Quiet):
        scrapes = 0

        def do_GET(self):
            Target.scrapes += 1
            n = Target.scrapes
            body = "\n".join(h + str(n * 17 + i % 101) for i, h in enumerate(heads)).encode() + b"\n"
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Target


def make_recorder():
    class Recorder(Quiet):
        bodies, lock = [], threading.Lock()

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with Recorder.lock:
                Recorder.bodies.append((self.headers["Content-Type"], body))
            self.send_response(204)
            if "v2" in self.headers["Content-Type"]:
                for kind in ("Samples", "Histograms", "Exemplars"):
                    self.send_header(f"X-Prometheus-Remote-Write-{kind}-Written", "1000000")
            self.send_header("Content-Length", "0")
            self.end_headers()

    return Recorder


def scrape_config(path, target, write=""):
    path.write_text(f"global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n{write}scrape_configs:\n"
                    f"  - job_name: bench\n    static_configs: [{{targets: ['127.0.0.1:{target}']}}]\n")


def record(args, folder, version):
    """Bodies that a sender of this version made of so many scrapes."""
    target_class, recorder_class = make_target(args.series), make_recorder()
    target, recorder = serve(target_class), serve(recorder_class)
    config = folder / f"record-{version}.yml"
    url = f"http://127.0.0.1:{recorder.server_port}/api/v1/write"
    if version == 1:
        scrape_config(config, target.server_port)
        command = [args.vmagent, f"-promscrape.config={config}", f"-remoteWrite.url={url}",
                   "-remoteWrite.forcePromProto=true", f"-remoteWrite.tmpDataPath={folder}/vmagent",
                   f"-httpListenAddr=127.0.0.1:{free_port()}", "-remoteWrite.maxRowsPerBlock=2000"]
    else:
        scrape_config(config, target.server_port, f"remote_write:\n  - url: {url}\n"
                      "    protobuf_message: io.prometheus.write.v2.Request\n"
                      "    queue_config: {max_shards: 4}\n")
        command = [args.prometheus, f"--config.file={config}", f"--storage.tsdb.path={folder}/record-tsdb",
                   f"--web.listen-address=127.0.0.1:{free_port()}"]
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while target_class.scrapes < args.scrapes:
        time.sleep(0.2)
    time.sleep(3)
    process.terminate()
    process.wait()
    target.shutdown()
    recorder.shutdown()
    return recorder_class.bodies


def count_samples(bodies):
    """Decompressed by a reader of our own: two messages deep."""
    return sum(samples_of(unsnappy(body), "v2" in kind) for kind, body in bodies)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def unsnappy(data):
    length, at = varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            n = tag >> 2
            if n >= 60:
                size = n - 59
                n = int.from_bytes(data[at:at + size], "little")
                at += size
            out += data[at:at + n + 1]
            at += n + 1
            continue
        if tag & 3 == 1:
            n, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            size = 2 if tag & 3 == 2 else 4
            n, offset = (tag >> 2) + 1, int.from_bytes(data[at:at + size], "little")
            at += size
        for _ in range(n):
            out.append(out[-offset])
    assert len(out) == length
    return bytes(out)


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 2:
            length, at = varint(data, at)
            yield tag >> 3, data[at:at + length]
            at += length
        elif tag & 7 == 0:
            _, at = varint(data, at)
        else:
            at += 8


def samples_of(message, version_2):
    return sum(sum(1 for number, _ in fields(series) if number == 2)
               for number, series in fields(message) if number == (5 if version_2 else 1))


class Server:
    def __init__(self, name, command, port, ready):
        self.name, self.command, self.port, self.ready = name, command, port, ready

    def start(self, folder):
        self.log = open(folder / f"{self.name}.log", "wb")
        self.process = subprocess.Popen([str(c) for c in self.command], stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}{self.ready}", timeout=2).read()
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit(f"{self.name} is not ready: {folder / f'{self.name}.log'}")

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            parts = stat.read().rsplit(") ", 1)[1].split()
        return (int(parts[11]) + int(parts[12])) / TICKS

    def memory(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def servers(args, folder):
    ports = [free_port() for _ in range(4)]
    config = folder / "empty.yml"
    config.write_text("global: {}\n")
    return {
        "prometheus": Server("prometheus", [
            args.prometheus, f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
            "--web.enable-remote-write-receiver", f"--web.listen-address=127.0.0.1:{ports[0]}"],
            ports[0], "/-/ready"),
        "victoria": Server("victoria", [
            args.victoria_metrics, f"-storageDataPath={folder}/data",
            f"-httpListenAddr=127.0.0.1:{ports[1]}", "-loggerLevel=ERROR"], ports[1], "/health"),
        "promfabric": Server("promfabric", [
            args.promfabric, "ingest", "--data", folder / "data", "--ingest-id", "a", "--bootstrap",
            "--http-listen", f"127.0.0.1:{ports[2]}", "--peer-listen", f"127.0.0.1:{ports[3]}"],
            ports[2], "/readyz"),
    }


def replay(port, bodies, connections):
    """All of them, in order of their scrapes as far as that goes; latencies in seconds."""
    latencies, lock, at = [], threading.Lock(), iter(range(len(bodies)))

    def run():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while True:
            with lock:
                i = next(at, None)
            if i is None:
                return
            kind, body = bodies[i]
            headers = {"Content-Type": kind, "Content-Encoding": "snappy",
                       "X-Prometheus-Remote-Write-Version": "2.0.0" if "v2" in kind else "0.1.0"}
            began = time.perf_counter()
            connection.request("POST", "/api/v1/write", body=body, headers=headers)
            answer = connection.getresponse()
            text = answer.read()
            took = time.perf_counter() - began
            if answer.status // 100 != 2:
                raise SystemExit(f"status {answer.status}: {text[:300]}")
            with lock:
                latencies.append(took)

    threads = [threading.Thread(target=run) for _ in range(connections)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began, sorted(latencies)


def size_of(folder):
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) if folder.exists() else 0


def measure(args, name, bodies, samples):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-accept-", dir="/dev/shm"))
    server = servers(args, folder)[name]
    try:
        server.start(folder)
        time.sleep(1)
        perf = None
        if args.perf and name == "promfabric":
            perf = subprocess.Popen(["perf", "record", "-q", "-g", "-o", args.perf, "-p",
                                     str(server.process.pid)])
            time.sleep(0.5)
        before = server.cpu()
        wall, latencies = replay(server.port, bodies, args.connections)
        time.sleep(0.5)
        cpu = server.cpu() - before
        if perf:
            perf.send_signal(2)
            perf.wait()
        return {"cpu_ns": cpu / samples * 1e9, "wall": wall, "memory": server.memory(),
                "disk": size_of(folder / "data") / samples,
                "p50": statistics.median(latencies) * 1e3, "p99": latencies[int(len(latencies) * 0.99)] * 1e3}
    finally:
        server.stop()
        shutil.rmtree(folder, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("promfabric", "prometheus", "victoria-metrics", "vmagent"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--series", type=int, default=20000)
    parser.add_argument("--scrapes", type=int, default=20)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only")
    parser.add_argument("--versions", default="1,2")
    parser.add_argument("--perf")
    args = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-accept-record-"))
    try:
        for version in map(int, args.versions.split(",")):
            bodies = record(args, folder, version)
            samples = count_samples(bodies)
            print(f"remote write {version}.0: {len(bodies)} requests, {samples} samples, "
                  f"{sum(len(b) for _, b in bodies) / samples:.1f} bytes a sample, {args.connections} connections",
                  flush=True)
            names = [args.only] if args.only else ["promfabric", "prometheus", "victoria"]
            names = [n for n in names if version == 1 or n != "victoria"]
            results = {n: [] for n in names}
            for _ in range(args.runs):
                for name in names:  # in turn: what else the machine does meets all alike
                    results[name].append(measure(args, name, bodies, samples))
            for name in names:
                def median(key):
                    return statistics.median(r[key] for r in results[name])
                print(f"  {name:11} {median('cpu_ns'):7.0f} ns of processor a sample  "
                      f"{samples / median('wall') / 1e3:7.0f} k samples/s  p50 {median('p50'):6.1f} ms  "
                      f"p99 {median('p99'):6.1f} ms  {median('memory'):6.0f} MiB  "
                      f"{median('disk'):5.1f} bytes of disk a sample", flush=True)
    finally:
        shutil.rmtree(folder, True)


if __name__ == "__main__":
    main()
