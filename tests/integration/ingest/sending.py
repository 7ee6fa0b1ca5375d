"""sending.py - senders that go on while nodes come and go, and what they were told."""
import threading
import time

from messages import Series, log_of, now_ms, version_1, write

GIVE_UP_SECONDS = 30


class Senders:
    """Threads that each write a request after the other, to any node, until it is acknowledged."""

    def __init__(self, nodes, count=4):
        self.nodes, self.base, self.stopping = nodes, now_ms(), threading.Event()
        self.sent, self.failed, self.retries = [set() for _ in range(count)], [], 0
        self.threads = [threading.Thread(target=self.send, args=(c,)) for c in range(count)]
        for thread in self.threads:
            thread.start()

    def labels(self, client, part):
        return {"__name__": "m", "client": str(client), "part": str(part)}

    def send(self, client):
        number = at = client
        while not self.stopping.is_set():
            number += 1
            body = version_1([Series(self.labels(client, part), [(self.base + number, float(number))]) for part in range(4)])
            deadline = time.monotonic() + GIVE_UP_SECONDS
            while True:  # a sender: the same bytes until they are taken
                try:
                    status, why, _ = write(self.nodes[at % len(self.nodes)], body, timeout=20)
                except OSError as error:
                    status, why = 503, repr(error)
                if status == 204:
                    break
                if (status < 500 and status != 429) or time.monotonic() > deadline:
                    self.failed.append((client, number, status, why))
                    return
                self.retries += 1
                at += 1
                time.sleep(0.05)
            self.sent[client].add(number)
            time.sleep(0.005)

    def count(self):
        return sum(len(numbers) for numbers in self.sent)

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)

    def check(self, test, node, partitions):
        """Everything that was acknowledged is in the logs, once."""
        test.assertEqual(self.failed, [])
        logs = [log_of(node, p) for p in range(partitions)]
        test.assertEqual([log.doubled for log in logs], [0] * partitions)
        missing = [(client, number, part) for client, numbers in enumerate(self.sent) for number in numbers
                   for part in range(4)
                   if float(number) not in [log.value(self.labels(client, part), self.base + number) for log in logs]]
        test.assertEqual(missing, [])
