"""test_limits.py - bounds, fairness, vanished data and discovery: what happens at the edges."""
import http.server
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from harness import BINARY, START, Fabric, check_one_end, load, standard_lines, wait_for

END = START + 3600


class FabricCase(unittest.TestCase):
    def fabric(self, workers=1, api=(), worker=(), start_workers=True):
        fabric = Fabric(workers, api, worker, start_workers)
        self.addCleanup(fabric.close)
        return fabric


class Bounds(FabricCase):
    def test_a_query_over_its_limits_fails_alone(self):
        for flags, status, kind in (
                (["--query-memory=100KiB"], 422, "execution"),
                (["--query-artifact-bytes=1000B"], 422, "execution"),
                (["--query-samples=100"], 422, "execution"),
                (["--query-series=5"], 422, "execution"),
                (["--query-work-items=2"], 422, "execution"),
                (["--spool-bytes=1000B"], 500, "internal")):
            with self.subTest(flags=flags):
                fabric = Fabric(1, flags)
                try:
                    load(fabric.store, standard_lines())
                    fabric.wait_workers(1)
                    got, answer = fabric.json("/api/v1/query_range", {
                        "query": "temperature", "start": START, "end": END, "step": 5})
                    self.assertEqual((got, answer.get("errorType")), (status, kind), answer)
                    self.assertEqual(fabric.query("1", END)["result"][1], "1")
                    wait_for("an empty spool",
                             lambda: fabric.metric("promfabric_api_spool_bytes") == 0)
                finally:
                    fabric.close()

    def test_queries_together_have_a_limit_too(self):
        """One that holds most of the memory: the next large one is told so, small ones go on."""
        fabric = self.fabric(1, ("--queries-memory=20MiB",))
        load(fabric.store, standard_lines(48))
        fabric.wait_workers(1)
        path = (f"/api/v1/query_range?query=temperature&start={START}&end={START + 7000}&step=1")
        self.assertEqual(fabric.get(path)[0], 200)
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        holder.connect(("127.0.0.1", fabric.api_port))
        holder.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())  # and reads nothing
        wait_for("its memory", lambda: fabric.metric("promfabric_api_query_memory_bytes") > 10_500_000)
        refusals = [fabric.get(path) for _ in range(3)]
        for status, headers, body in refusals:
            answer = json.loads(body)
            self.assertEqual((status, answer["errorType"]), (503, "unavailable"), answer)
            self.assertIn("--queries-memory", answer["error"])
            self.assertIn("Retry-After", headers)
        status, _, events = fabric.events("temperature * 2", START, START + 60, "15s")
        self.assertEqual((status, check_one_end(events)), (200, "ok"))
        self.assertEqual(len(fabric.query("up", END)["result"]), 2)
        holder.close()
        wait_for("its end", lambda: fabric.metric("promfabric_api_query_memory_bytes") == 0)
        self.assertEqual(fabric.get(path)[0], 200)

    def test_a_full_disk_fails_the_query_that_meets_it(self):
        """The API's spool on a file system of 64 KiB: large artifacts do not fit, small ones do."""
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
            self.skipTest("unshare -rm is not allowed here, so there is no small disk to fill")
        fabric = self.fabric(1)
        load(fabric.store, standard_lines())
        fabric.api.stop()
        spool = f"{fabric.folder}/spool-api"
        fabric.api_wrapper = ("unshare", "-rm", "sh", "-c",
                              f"mkdir -p {spool} && mount -t tmpfs -o size=64k none {spool} && "
                              'exec "$@"', "sh")
        fabric.start_api()
        fabric.wait_workers(1)
        for _ in range(3):
            status, answer = fabric.json("/api/v1/query_range", {
                "query": "temperature", "start": START, "end": START + 7000, "step": 1})
            self.assertEqual((status, answer["errorType"]), (500, "internal"), answer)
            self.assertIn("spool", answer["error"])
            self.assertEqual(len(fabric.query("up", END)["result"]), 2)
        wait_for("an empty spool", lambda: fabric.metric("promfabric_api_spool_bytes") == 0)

    def test_no_memory_at_all_is_said_at_once(self):
        fabric = self.fabric(1, ("--queries-memory=100B",), start_workers=False)
        for path, params in (("/api/v1/query", {"query": "1"}),
                             ("/api/v1/query_range", {"query": "1", "start": 1, "end": 2,
                                                      "step": 1}),
                             ("/api/v1/series", {"match[]": "up"}), ("/api/v1/labels", {}),
                             ("/api/v1/label/job/values", {})):
            status, answer = fabric.json(path, params)
            self.assertEqual((status, answer["errorType"]), (503, "unavailable"), (path, answer))
        status, answer = fabric.json("/api/v1/metrics/query", {"q": "1"})
        self.assertEqual((status, answer["code"]), (503, "unavailable"))
        self.assertEqual(fabric.get("/livez")[0], 200)

    def test_tenants_take_turns(self):
        """One tenant's long queue does not keep out another's single query."""
        fabric = self.fabric(1, ("--queries-active=1", "--worker-wait=60s"), start_workers=False)
        for tenant in ("many", "one"):
            load(fabric.store, standard_lines(2, 50), tenant=tenant)
        order, threads = [], []

        def ask(tenant):
            status, _ = fabric.json("/api/v1/query", {"query": "up", "time": START + 60},
                                    headers={"X-Scope-OrgID": tenant})
            order.append((tenant, status))

        for tenant in ["many"] * 8 + ["one"]:
            threads.append(threading.Thread(target=ask, args=(tenant,)))
            threads[-1].start()
            time.sleep(0.05)
        wait_for("all queries", lambda: len(fabric.data("/api/v1/queries")) == 9)
        fabric.start_worker(0)
        for thread in threads:
            thread.join(30)
        self.assertEqual([status for _, status in order], [200] * 9)
        self.assertLess(order.index(("one", 200)), 4, order)

    def test_slow_queries_are_logged_with_their_plan(self):
        fabric = self.fabric(1, ("--slow-query=0s",))
        load(fabric.store, standard_lines(2, 50))
        fabric.query("sum(rate(http_requests_total[5m]))", START + 300)
        line = wait_for("the log", lambda: next(
            (l for l in fabric.api.log_text().splitlines() if 'msg="slow query"' in l), None))
        for part in ("query_id=", "plan=", "work_seconds=", "tenant=default", "outcome=ok"):
            self.assertIn(part, line)
        query_id = line.split("query_id=")[1].split()[0]
        self.assertIn(f"query_id={query_id}", fabric.workers[0].log_text())

    def test_bad_flags_and_missing_stores_are_one_line(self):
        worker, store = "--worker=x:1", "--store=/tmp"
        for args, code in (([store], 2), ([store, "--discovery=magic"], 2),
                           ([worker, store, "--http-listen=nowhere"], 1),
                           ([worker, "--store=/nonexistent/folder"], 1),
                           ([worker, store, "--query-timeout=soon"], 2),
                           ([worker, store, "--http-tls-cert=/x"], 2),
                           ([worker, store, "--enable-feature=none"], 2)):
            run = subprocess.run([BINARY, "api", *args], capture_output=True, text=True, timeout=20)
            self.assertEqual((run.returncode, run.stderr.count("error: ")), (code, 1),
                             (args, run.stderr))


class Vanished(FabricCase):
    def test_replaced_segments_are_looked_up_again(self):
        """Segments deleted and written again under other names in the middle of queries."""
        fabric = self.fabric(2)
        load(fabric.store, standard_lines())
        fabric.wait_workers(2)
        want = fabric.events("sum by (job) (rate(http_requests_total[5m]))", START, END, "60s")[1]
        stop, failures = threading.Event(), []

        def replace():
            while not stop.is_set():
                old = list(pathlib.Path(fabric.store).rglob("*.parquet"))
                load(fabric.store, standard_lines())
                for path in old:
                    path.unlink()

        thread = threading.Thread(target=replace)
        thread.start()
        try:
            for _ in range(25):
                _, raw, events = fabric.events(
                    "sum by (job) (rate(http_requests_total[5m]))", START, END, "60s")
                if raw != want:
                    failures.append(events[-2:])
        finally:
            stop.set()
            thread.join()
        self.assertEqual(failures, [])

    def test_a_corrupt_segment_is_an_error_that_names_it(self):
        fabric = self.fabric(1)
        load(fabric.store, standard_lines(), shards=1)
        fabric.wait_workers(1)
        path = max(pathlib.Path(fabric.store).rglob("*.parquet"), key=lambda p: p.stat().st_size)
        data = bytearray(path.read_bytes())
        for i in range(100, len(data) // 2, 50):
            data[i] ^= 0xff
        path.write_bytes(data)
        status, answer = fabric.json("/api/v1/query_range", {"query": "temperature", "start": START,
                                                             "end": END, "step": 60})
        self.assertEqual((status, answer["errorType"]), (500, "internal"), answer)
        self.assertIn(path.name, answer["error"])


class ApiServer(http.server.BaseHTTPRequestHandler):
    """As much of a Kubernetes API server as discovery asks for."""
    endpoints, seen, version, watch = [], [], 1, True
    changed = threading.Condition()

    @classmethod
    def publish(cls, endpoints):
        with cls.changed:
            cls.endpoints, cls.version = endpoints, cls.version + 1
            cls.changed.notify_all()

    def serve_watch(self):
        since = int(self.path.split("resourceVersion=")[1].split("&")[0])
        self.send_response(200 if ApiServer.watch else 403)
        self.end_headers()
        if not ApiServer.watch:
            return
        with ApiServer.changed:
            ApiServer.changed.wait_for(lambda: ApiServer.version != since, 10)
        self.wfile.write(b'{"type":"MODIFIED","object":{}}\n')

    def do_GET(self):
        ApiServer.seen.append((self.path, self.headers.get("Authorization")))
        if "watch=true" in self.path:
            self.serve_watch()
            return
        body = json.dumps({"kind": "EndpointSliceList",
                           "metadata": {"resourceVersion": str(ApiServer.version)}, "items": [
            {"addressType": "IPv4", "ports": [{"name": "control", "port": port}],
             "endpoints": [{"addresses": ["127.0.0.1"], "conditions": conditions}]}
            for port, conditions in ApiServer.endpoints]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Ecs(http.server.BaseHTTPRequestHandler):
    """As much of the ECS API as discovery asks for: two pages of one task each."""
    tasks, seen = [], []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        action = self.headers["X-Amz-Target"].split(".")[1]
        Ecs.seen.append((action, self.headers["Authorization"], body))
        if action == "ListTasks":
            page = int(body.get("nextToken", 0))
            answer = {"taskArns": [f"arn:{i}" for i in range(len(Ecs.tasks))][page:page + 1]}
            if page + 1 < len(Ecs.tasks):
                answer["nextToken"] = str(page + 1)
        else:
            answer = {"tasks": [{"lastStatus": Ecs.tasks[int(arn[4:])][1], "attachments": [
                {"details": [{"name": "privateIPv4Address",
                              "value": Ecs.tasks[int(arn[4:])][0]}]}]} for arn in body["tasks"]]}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


class Discovery(FabricCase):
    def test_ecs(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ecs)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        keys = {"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_REGION": "eu-test-1"}
        os.environ.update(keys)
        try:
            # Another loopback address stands for a task that is still starting.
            Ecs.tasks = [("127.0.0.1", "RUNNING"), ("127.0.0.9", "PENDING")]
            fabric = self.fabric(1)
            fabric.api.stop()
            port = fabric.control_ports[0]
            fabric.control_ports = []
            fabric.api_flags = ["--discovery=ecs", "--ecs-cluster=c", "--ecs-service=s",
                                f"--ecs-port={port}", "--discovery-interval=200ms",
                                f"--ecs-endpoint=http://127.0.0.1:{server.server_port}"]
            fabric.start_api()
            fabric.wait_workers(1)
            self.assertEqual([w["address"] for w in fabric.data("/api/v1/workers")],
                             [f"127.0.0.1:{port}"])
            self.assertTrue(all(a.startswith("AWS4-HMAC-SHA256 Credential=AKIDTEST/") and
                                "/eu-test-1/ecs/aws4_request" in a for _, a, _ in Ecs.seen))
            self.assertEqual(Ecs.seen[0][2]["serviceName"], "s")
            Ecs.tasks = []
            wait_for("an empty list",
                     lambda: fabric.scaling()["workers"] == {"alive": 0, "accepting": 0,
                                                             "draining": 0})
        finally:
            for key in keys:
                os.environ.pop(key)
            server.shutdown()
            thread.join()
            server.server_close()

    def test_kubernetes_watched(self):
        # The interval is long: only a watch can be as quick as this test asks for.
        self.check_kubernetes(True, "1h")

    def test_kubernetes_listed_where_watching_is_not_allowed(self):
        self.check_kubernetes(False, "200ms")

    def check_kubernetes(self, watch, interval):
        ApiServer.watch = watch
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ApiServer)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        secrets = tempfile.mkdtemp(prefix="pf-k8s-")
        with open(f"{secrets}/token", "w") as file:
            file.write("s3cret")
        with open(f"{secrets}/namespace", "w") as file:
            file.write("metrics")
        try:
            ApiServer.publish([])
            fabric = self.fabric(2, (
                "--discovery=kubernetes", "--kubernetes-service=workers",
                f"--kubernetes-server=http://127.0.0.1:{server.server_port}",
                f"--kubernetes-secrets={secrets}", f"--discovery-interval={interval}"))
            load(fabric.store, standard_lines(2, 50))
            self.assertEqual(fabric.scaling()["workers"]["alive"], 0)
            ports = fabric.control_ports
            ApiServer.publish([(ports[0], {"ready": True, "serving": True})])
            fabric.wait_workers(1)
            ApiServer.publish([(ports[0], {"ready": False, "serving": True,
                                           "terminating": True}),
                               (ports[1], {"ready": True, "serving": True})])
            fabric.wait_workers(2)
            self.assertEqual(len(fabric.query("up", START + 300)["result"]), 2)
            ApiServer.publish([(ports[1], {"ready": True, "serving": True})])
            fabric.wait_workers(1)
            self.assertEqual(len(fabric.query("up", START + 300)["result"]), 2)
            path, token = ApiServer.seen[-1]
            self.assertEqual(token, "Bearer s3cret")
            self.assertIn("/namespaces/metrics/endpointslices?labelSelector=", path)
        finally:
            ApiServer.publish([])
            server.shutdown()
            thread.join()
            server.server_close()
            shutil.rmtree(secrets)

    def test_dns(self):
        fabric = Fabric(1, start_workers=True)
        self.addCleanup(fabric.close)
        fabric.api.stop()
        port = fabric.control_ports[0]
        fabric.control_ports = []
        fabric.api_flags = ["--discovery=dns", f"--worker=localhost:{port}",
                            "--discovery-interval=200ms"]
        fabric.start_api()
        # localhost may have an IPv6 address too, on which nobody listens.
        fabric.wait_workers(1)


if __name__ == "__main__":
    unittest.main()
