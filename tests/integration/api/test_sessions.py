"""test_sessions.py - an API that dies or falls silent: its workers drop its work, and only its work."""
import http.client
import os
import signal
import threading
import time
import unittest

from harness import (LONG, START, Fabric, Process, check_one_end, free_port, load, standard_lines,
                     wait_for, without_comments)

FOR_MINUTES = (LONG, START, START + 10000, "1s")
SHORT = ("sum by (job) (rate(http_requests_total[5m]))", START + 300, START + 3600, "30s")
# A worker looks at its clock and at the flag of a canceled work often, if the machine lets it.
SLACK = 2.0


def figures(port):
    """What a worker has of its sessions: (sessions, running or stopping, queued, artifacts)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/metrics")
    values = dict(line.rsplit(" ", 1) for line in connection.getresponse().read().decode()
                  .splitlines() if not line.startswith("#"))
    connection.close()
    states = {state: float(values[f'promfabric_worker_works{{state="{state}"}}'])
              for state in ("running", "stopping")}
    return (float(values["promfabric_worker_sessions"]), sum(states.values()),
            float(values["promfabric_worker_queue_depth"]),
            float(values["promfabric_worker_artifacts"]))


class Sessions(unittest.TestCase):
    """Two workers with one slot each."""
    lines, shards = standard_lines(), 8

    def setUp(self):
        # Acknowledged artifacts would stay for minutes: only the end of their session frees them.
        self.fabric = Fabric(2, ("--query-timeout=5m",), (
            "--slots=1", "--work-samples-max=1000000000000", "--artifact-ttl-after-ack=10m"))
        self.addCleanup(self.fabric.close)
        load(self.fabric.store, self.lines, shards=self.shards)
        self.fabric.wait_workers(2)

    def ask(self, query):
        """Ask from a thread; what came, or the error, is appended to the list that is returned."""
        got = []

        def client():
            try:
                got.append(self.fabric.events(*query, timeout=120))
            except (OSError, http.client.HTTPException) as error:
                got.append(error)

        thread = threading.Thread(target=client)
        thread.start()
        self.addCleanup(thread.join)
        return got

    def all_figures(self):
        return [figures(port) for port in self.fabric.http_ports]

    def start_other(self):
        """A second API on the same workers; its port."""
        port = free_port()
        other = Process(self.fabric.folder, "other", [
            "api", f"--store={self.fabric.store}", f"--http-listen=127.0.0.1:{port}",
            f"--spool={self.fabric.folder}/spool-other", "--query-timeout=5m",
            *[f"--worker=127.0.0.1:{p}" for p in self.fabric.control_ports]])
        self.addCleanup(other.stop)
        wait_for("both sessions", lambda: all(f[0] == 2 for f in self.all_figures()))
        return port


class LostApi(Sessions):
    """A query whose works fill the slots and the queues."""

    def fill(self):
        """Artifacts from a query that is over, then work that runs and work that waits."""
        self.assertEqual(check_one_end(self.fabric.events(*SHORT)[2]), "ok")
        got = self.ask(FOR_MINUTES)
        wait_for("running and queued work", lambda: all(
            running == 1 and queued > 0 for _, running, queued, _ in self.all_figures()))
        self.assertGreater(sum(f[3] for f in self.all_figures()), 0)
        return got

    def check_dropped(self, begun, within, others=0):
        """The session is gone with its works, their places in the queue and its artifacts."""
        wait_for("nothing left", lambda: self.all_figures() == [(others, 0, 0, 0)] * 2, within + 5)
        took = time.monotonic() - begun
        print(f"\n{self.id().split('.')[-1]}: free after {took:.2f} s")
        self.assertLess(took, within)
        for i in range(2):
            self.assertEqual(os.listdir(f"{self.fabric.folder}/spool-{i}/artifacts"), [])

    def test_killed(self):
        got = self.fill()
        begun = time.monotonic()
        self.fabric.api.kill()
        self.check_dropped(begun, 1 + SLACK)
        wait_for("the client", lambda: got)
        self.assertIsInstance(got[0], (OSError, http.client.HTTPException))
        self.fabric.start_api()
        self.fabric.wait_workers(2)
        self.assertEqual(check_one_end(self.fabric.events(*SHORT)[2]), "ok")

    def test_stopped(self):
        """Its connections stay open and nothing comes: three missed heartbeats are the end."""
        self.fill()
        begun = time.monotonic()
        self.fabric.api.signal(signal.SIGSTOP)
        try:
            self.check_dropped(begun, 3 + SLACK)
            self.assertGreater(time.monotonic() - begun, 1.9)  # and not at the first one
        finally:
            self.fabric.api.kill()

    def test_stopped_for_a_while(self):
        """It wakes up to closed streams, has the work done again, and its client never knows."""
        query = (LONG, START + 7100, START + 7200, "1s")
        want = without_comments(self.fabric.events(*query)[1])
        got = self.ask(query)
        wait_for("running work", lambda: any(f[1] for f in self.all_figures()))
        self.fabric.api.signal(signal.SIGSTOP)
        try:
            wait_for("the workers to give up", lambda: all(
                f[0] == 0 for f in self.all_figures()))
        finally:
            self.fabric.api.signal(signal.SIGCONT)
        wait_for("the answer", lambda: got, 60)
        status, raw, events = got[0]
        self.assertEqual((status, check_one_end(events)), (200, "ok"))
        self.assertEqual(without_comments(raw), want)

    def test_another_api_does_not_notice(self):
        port = self.start_other()
        self.ask(FOR_MINUTES)
        wait_for("running work", lambda: all(f[1] == 1 for f in self.all_figures()))
        # Its works wait behind those of the API that is about to die.
        own_port, self.fabric.api_port = self.fabric.api_port, port
        wait_for("the other API", self.fabric.up)
        got = self.ask(SHORT)
        wait_for("its work", lambda: self.fabric.scaling()["work"]["inflight"] > 0)
        self.fabric.api.kill()
        wait_for("its answer", lambda: got, 10)
        status, _, events = got[0]
        self.assertEqual((status, check_one_end(events)), (200, "ok"))
        lost = self.fabric.metric("promfabric_api_control_disconnects_total")
        self.assertEqual(lost, 0)
        self.fabric.api_port = own_port


class Fair(Sessions):
    lines, shards = standard_lines(60), 32  # some thirty works

    def test_small_queries_do_not_wait_for_large_ones(self):
        """Slots are shared between queries of an API, and between APIs: those that come last and
        want little are served long before the one that wants much."""
        load(self.fabric.store, ["up 1x100"], tenant="small", shards=1)
        ports = [self.fabric.api_port, self.start_other()]
        large = self.ask((LONG, START + 6000, START + 6300, "1s"))
        wait_for("a queue", lambda: all(f[2] > 8 for f in self.all_figures()))
        for self.fabric.api_port in ports:
            wait_for("the API", self.fabric.up)
            # One work, behind one that runs and before those that wait.
            data = self.fabric.data("/api/v1/query", {"query": "up", "time": START + 600},
                                    headers={"X-Scope-OrgID": "small"})
            self.assertEqual(len(data["result"]), 1)
            self.assertFalse(bool(large), "the large one was first")
        self.fabric.api_port = ports[0]
        for query in self.fabric.data("/api/v1/queries"):
            self.fabric.request("DELETE", "/api/v1/queries/" + query["query_id"])


if __name__ == "__main__":
    unittest.main()
