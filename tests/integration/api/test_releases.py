"""test_releases.py - an API and workers of two releases: those of now, and those whose control stream has a newer
version, in every order of an upgrade and back, while queries are asked."""
import os
import threading
import unittest

from harness import BINARY, START, Fabric, load, standard_lines, wait_for

NEXT = os.environ["PROMFABRIC_NEXT"]
NOW = 3  # PB_PROTOCOL_VERSION
QUERY = "sum by (job) (rate(http_requests_total[5m]))"
AT = START + 3600


class Asking:
    """Asks one thing over and over; what is not the right answer is kept."""

    def __init__(self, fabric, right):
        self.fabric, self.right, self.count, self.wrong = fabric, right, 0, []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stopping.is_set():
            try:
                answer = self.fabric.query(QUERY, AT)
            except (AssertionError, OSError) as error:
                answer = repr(error)
            if answer != self.right:
                self.wrong.append(answer)
            self.count += 1

    def stop(self):
        self.stopping.set()
        self.thread.join(60)


class Releases(unittest.TestCase):
    def spoken(self, worker):
        """The version that the worker speaks with its API, as it says in its log when they meet."""
        lines = [line for line in worker.log_text().splitlines() if "session greeted" in line]
        return int(lines[-1].rsplit("protocol=", 1)[1].split()[0]) if lines else None

    def change_worker(self, fabric, index, binary, protocol):
        self.assertEqual(fabric.workers[index].stop(60), 0)
        open(fabric.workers[index].log_path, "w").close()
        fabric.start_worker(index, binary=binary)
        fabric.wait_workers(2, 60)
        wait_for("them to meet", lambda: self.spoken(fabric.workers[index]) == protocol)

    def change_api(self, fabric, binary, protocol):
        fabric.api.stop(60)
        fabric.start_api(binary)
        fabric.wait_workers(2, 60)
        for worker in fabric.workers:
            wait_for("them to meet", lambda worker=worker: self.spoken(worker) == protocol)

    def test_workers_and_then_the_api_go_to_the_next_release_and_back(self):
        fabric = Fabric(workers=2)
        self.addCleanup(fabric.close)
        load(fabric.store, standard_lines())
        fabric.wait_workers(2)
        right = wait_for("an answer", lambda: (answer := fabric.query(QUERY, AT))["result"] and answer, 60)
        for binary in (NEXT, BINARY):
            asking = Asking(fabric, right)
            self.addCleanup(asking.stop)
            for index in range(2):  # workers first; between them two releases side by side
                self.change_worker(fabric, index, binary, NOW)
                before = asking.count
                wait_for("queries", lambda asking=asking, before=before: asking.count > before + 5, 60)
            asking.stop()
            self.assertEqual(asking.wrong, [])
            self.change_api(fabric, binary, NOW + (binary == NEXT))
            self.assertEqual(fabric.query(QUERY, AT), right)


if __name__ == "__main__":
    unittest.main()
