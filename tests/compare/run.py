"""run.py - the work of scripts/compare-binaries, whose head says what it does."""
import argparse
import collections
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "lib"))
from ports import free_port  # noqa: E402

FEATURES = ["promql-experimental-functions", "promql-extended-range-selectors",
            "promql-binop-fill-modifiers", "promql-delayed-name-removal", "use-start-timestamps"]
QUERY_ID = re.compile(rb"api-[0-9a-f]{8}-[0-9]+")
KEEP_ALIVE = re.compile(rb"^:[^\n]*\n\n?", re.M)
FORM = "application/x-www-form-urlencoded"
# Times that hold everything scripts load, which begins at 0.
EVER = {"start": "-86400", "end": "1000000000"}
# What is asked beside an instant: a range around it.
BEFORE_S, AFTER_S, STEP_S = 3000, 600, 300

Answer = collections.namedtuple("Answer", "status content_type body")


def die(text):
    print(f"error: {text}", file=sys.stderr)
    sys.exit(2)


class Side:
    """An API and its workers, of one binary, over the common store."""

    def __init__(self, name, binary, folder, store, workers):
        self.name, self.binary = name, binary
        self.folder = folder / name
        self.folder.mkdir()
        self.processes = []
        self.port = free_port()
        controls = [free_port() for _ in range(workers)]
        for i, control in enumerate(controls):
            self.start(f"worker-{i}", "worker", f"--store={store}", f"--worker-id=worker-{i}",
                       f"--control-listen=127.0.0.1:{control}",
                       f"--http-listen=127.0.0.1:{free_port()}",
                       f"--spool={self.folder}/spool-{i}", "--log-level=warn")
        self.start("api", "api", f"--store={store}", f"--http-listen=127.0.0.1:{self.port}",
                   f"--spool={self.folder}/spool-api", "--log-level=warn", "--small-scan=0s",
                   "--query-samples=10000", *[f"--enable-feature={f}" for f in FEATURES],
                   *[f"--worker=127.0.0.1:{port}" for port in controls])
        self.wait_ready(workers)

    def start(self, name, *args):
        with open(self.folder / f"{name}.log", "wb") as log:
            self.processes.append(subprocess.Popen([self.binary, *args], stdout=log, stderr=log,
                                                   stdin=subprocess.DEVNULL))

    def wait_ready(self, workers):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            self.check_alive()
            try:
                answer = self.ask("GET", "/monitor/scaling", None, {})
                if json.loads(answer.body)["workers"]["accepting"] == workers:
                    return
            except (OSError, ValueError, KeyError):
                pass
            time.sleep(0.1)
        die(f"{self.name}: the API and its workers do not come up; logs in {self.folder}")

    def check_alive(self):
        for process in self.processes:
            if process.poll() is not None:
                die(f"{self.name}: `{' '.join(process.args[:2])}` ended with {process.returncode}; "
                    f"logs in {self.folder}")

    def ask(self, method, path, body, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body=body, headers=headers)
            response = connection.getresponse()
            data = response.read()
            return Answer(response.status, response.getheader("Content-Type"), data)
        finally:
            connection.close()

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def comparable(answer):
    """What must be equal."""
    body = KEEP_ALIVE.sub(b"", QUERY_ID.sub(b"QUERY-ID", answer.body))
    return answer.status, answer.content_type, body


class Comparison:
    """Asks both sides and keeps the counts."""

    def __init__(self, old, new, accept):
        self.old, self.new = old, new
        self.accept = [re.compile(a.encode()) for a in accept]
        self.asked = collections.Counter()
        self.answered = collections.Counter()  # with 200 by the old side
        self.accepted = collections.Counter()
        self.differences = []
        self.tenants = []
        self.seen = set()
        self.lock = threading.Lock()

    def ask(self, kind, method, path, body, headers):
        """Both answers are compared; the old one is returned."""
        answers = [side.ask(method, path, body, headers) for side in (self.old, self.new)]
        self.asked[kind] += 1
        self.answered[kind] += answers[0].status == 200
        if comparable(answers[0]) != comparable(answers[1]):
            if any(a.search(answers[0].body) for a in self.accept):
                self.accepted[kind] += 1
            else:
                question = urllib.parse.unquote_plus(body or "")
                self.differences.append((kind, f"{method} {path} {question}", headers, *answers))
        return answers[0]

    def form(self, kind, path, params, tenant):
        self.ask(kind, "POST", path, urllib.parse.urlencode(params, doseq=True),
                 {"Content-Type": FORM, "X-Scope-OrgID": tenant})

    def events(self, query, start, end, step, tenant):
        body = json.dumps({"q": query, "s": start, "e": end, "step": step})
        self.ask("event stream", "POST", "/api/v1/metrics/query", body,
                 {"Content-Type": "application/json", "X-Scope-OrgID": tenant})

    def further(self, path, params, tenant):
        """What else is asked about a query that a script asked."""
        query = params["query"]
        if path.endswith("query_range"):
            start, end, step = params["start"], params["end"], params["step"]
            for at in (start, end):
                self.form("instant", "/api/v1/query", {"query": query, "time": at}, tenant)
        else:
            at = float(params["time"])
            start, end = f"{max(0, at - BEFORE_S):.3f}", f"{max(0, at) + AFTER_S:.3f}"
            step = str(STEP_S)
            self.form("range", "/api/v1/query_range",
                      {"query": query, "start": start, "end": end, "step": step}, tenant)
        self.events(query, milliseconds(start), milliseconds(end), step, tenant)
        if query not in self.seen:
            self.seen.add(query)
            self.form("format", "/api/v1/format_query", {"query": query}, tenant)
            self.form("parse", "/api/v1/parse_query", {"query": query}, tenant)

    def scripted(self, path, body, tenant):
        """A request of promqltest; its answer."""
        with self.lock:
            params = {k: v[0] for k, v in
                      urllib.parse.parse_qs(body, keep_blank_values=True).items()}
            if tenant not in self.tenants:
                self.tenants.append(tenant)
            answer = self.ask("range" if path.endswith("range") else "instant", "POST", path, body,
                              {"Content-Type": FORM, "X-Scope-OrgID": tenant})
            self.further(path, params, tenant)
            return answer

    def about_tenants(self):
        for tenant in self.tenants:
            headers = {"X-Scope-OrgID": tenant}
            query = urllib.parse.urlencode({"match[]": '{__name__=~".+"}', **EVER})
            ever = urllib.parse.urlencode(EVER)
            self.ask("series", "GET", f"/api/v1/series?{query}", None, headers)
            self.form("series", "/api/v1/series",
                      {"match[]": '{__name__!=""}', **EVER}, tenant)
            names = self.ask("labels", "GET", f"/api/v1/labels?{ever}", None, headers)
            for name in json.loads(names.body).get("data") or []:
                self.ask("label values", "GET",
                         f"/api/v1/label/{urllib.parse.quote(name)}/values?{ever}", None, headers)


def milliseconds(seconds):
    return round(float(seconds) * 1000)


def proxy_of(comparison):
    """A server whose answers are the old side's."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            try:
                answer = comparison.scripted(self.path, body, self.headers.get("X-Scope-OrgID"))
            except (OSError, http.client.HTTPException) as why:
                answer = Answer(502, "text/plain", str(why).encode())
                comparison.differences.append(("no answer", f"{self.path} {body}", {}, answer,
                                               answer))
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type or "")
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def scripts_of(options):
    folders = [TOP / "tests" / "conformance", *map(pathlib.Path, options.corpus)]
    scripts = [s for f in folders for s in sorted(f.glob("*.test"))
               if not options.only or re.search(options.only, s.name)]
    if not scripts:
        die(f"no scripts in {', '.join(map(str, folders))}")
    return scripts


def runner_of(options):
    places = [options.runner] if options.runner else [
        os.path.join(os.path.dirname(b), "promqltest") for b in (options.new, options.old)]
    for place in places:
        if os.access(place, os.X_OK):
            return place
    return die(f"no promqltest at {' or '.join(places)}: build it or name it with --runner")


def first_difference(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return max(0, at - 60)


def show(differences, count):
    for kind, question, headers, old, new in differences[:count]:
        at = first_difference(old.body, new.body)
        print(f"--- {kind}: {question[:600]}\n    tenant {headers.get('X-Scope-OrgID')}")
        for name, answer in (("old", old), ("new", new)):
            text = answer.body[at:at + 300].decode(errors="replace")
            print(f"    {name} {answer.status} {answer.content_type} from byte {at}: {text}")


def run(options, folder):
    store = folder / "store"
    store.mkdir()
    sides = []
    try:
        for name, binary in (("old", options.old), ("new", options.new)):
            sides.append(Side(name, binary, folder, store, options.workers))
        comparison = Comparison(*sides, options.accept)
        proxy = proxy_of(comparison)
        importer = options.old if options.importer == "old" else options.new
        result = subprocess.run(
            [runner_of(options), f"--shards={options.shards}", "--through=http",
             f"--http=http://127.0.0.1:{proxy.server_address[1]}", f"--store={store}",
             f"--binary={importer}", *map(str, scripts_of(options))],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        verdict = re.findall(r"^\d+ passed, \d+ failed, \d+ skipped$", result.stdout, re.M)
        if not verdict:
            die(f"promqltest did not get to its end:\n{result.stdout[-2000:]}")
        comparison.about_tenants()
        for side in sides:
            side.check_alive()
        return comparison, verdict[-1]
    finally:
        for side in sides:
            side.stop()


def main():
    parser = argparse.ArgumentParser(usage="scripts/compare-binaries [FLAG...] OLD NEW; see --help")
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--corpus", action="append", default=[])
    parser.add_argument("--only")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runner")
    parser.add_argument("--importer", choices=["old", "new"], default="old")
    parser.add_argument("--accept", action="append", default=[])
    parser.add_argument("--show", type=int, default=10)
    options = parser.parse_args()
    for binary in (options.old, options.new):
        if not os.access(binary, os.X_OK):
            die(f"{binary} is not a program")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="promfabric-compare-"))
    try:
        comparison, verdict = run(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    different = collections.Counter(d[0] for d in comparison.differences)
    print(f"scripts, with the old answers: {verdict}; {len(comparison.tenants)} tenants")
    for kind, count in sorted(comparison.asked.items()):
        print(f"{kind + ':':14} {count:6} asked, {comparison.answered[kind]:6} answered with 200, "
              f"{different[kind]:4} different, "
              f"{comparison.accepted[kind]:4} accepted")
    show(comparison.differences, options.show)
    print(f"{sum(comparison.asked.values())} questions, {len(comparison.differences)} differences")
    return 1 if comparison.differences else 0


if __name__ == "__main__":
    sys.exit(main())
