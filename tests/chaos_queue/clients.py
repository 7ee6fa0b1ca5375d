"""clients.py - clients that remember everything they were told, as lines of a history.

A line is written before a request leaves and after its answer came, under one lock: their order is an order
in which things can have happened. tests/sim_queue/replay.c says what the lines mean and judges them."""
import random
import threading
import time


class History:
    def __init__(self, path):
        self.path, self.file, self.lock = path, open(path, "w"), threading.Lock()
        self.values = self.reads = 0
        self.acked = self.refused = self.unknown = self.end = 0
        self.last_ack = time.monotonic()
        self.longest_gap = 0.0

    def line(self, text):
        self.file.write(text + "\n")

    def offer(self):
        with self.lock:
            self.values += 1
            self.line(f"offer {self.values}")
            return self.values

    def offered(self, value, offset):
        with self.lock:
            now = time.monotonic()
            self.acked += 1
            self.end = max(self.end, offset)
            self.longest_gap = max(self.longest_gap, now - self.last_ack)
            self.last_ack = now
            self.line(f"acked {value} {offset}")

    def refuse(self, value):
        with self.lock:
            self.refused += 1
            self.line(f"refused {value}")

    def lose(self):
        with self.lock:
            self.unknown += 1

    def begin(self):
        with self.lock:
            self.reads += 1
            self.line(f"begin {self.reads}")
            return self.reads

    def read(self, number, kept, start, last, records):
        with self.lock:
            self.line(f"read {number} {kept} {start} {last} " + " ".join(f"{o}:{v}" for o, v in records))

    def consumed(self, records):
        with self.lock:
            for offset, value in records:
                self.line(f"consumed {offset} {value}")

    def offset(self, shown, acked):
        with self.lock:
            self.line(f"offset {shown} {acked}")

    def close(self):
        self.file.close()


def records_of(answer):
    return [(r["offset"], int(r["data"].split(" ", 1)[0])) for r in answer["records"]]


class Clients:
    """Threads that offer to, read and consume from nodes at random until they are stopped."""

    def __init__(self, cluster, folder, seed, pause_s):
        self.cluster, self.pause_s = cluster, pause_s
        self.orders, self.jobs = History(f"{folder}/orders.history"), History(f"{folder}/jobs.history")
        self.end = threading.Event()
        self.complaints = []
        self.made, self.told = [], set()
        self.watch_next = self.changes = self.beats = self.watches_gone = self.waited = 0
        work = [self.produce] * 4 + [self.look] * 2 + [self.produce_jobs, self.take, self.take, self.move,
                                                       self.make_queues, self.watch]
        self.threads = [threading.Thread(target=self.run, args=(fn, random.Random(f"{seed}/{i}"), i))
                        for i, fn in enumerate(work)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.end.set()
        for thread in self.threads:
            thread.join()

    def run(self, fn, rng, number):
        state = {"number": number}
        while not self.end.is_set():
            node = rng.choice(self.cluster.nodes)
            try:
                fn(rng, node, state)
            except OSError:
                pass  # nobody knows
            except Exception as error:  # a client that dies sees nothing wrong any more
                self.complaints.append(f"{fn.__name__}: {error!r}")
                return
            time.sleep(rng.random() * self.pause_s)

    def offer_to(self, history, queue, rng, node):
        value = history.offer()
        body = f"{value} " + "x" * rng.randrange(0, 400)
        try:
            status, answer = node.request("POST", f"/v1/queues/{queue}", body=body)
        except OSError:
            history.lose()
            raise
        if status == 200:
            history.offered(value, answer["first"])
        elif answer.get("unknown") or "error" not in answer:
            history.lose()
        else:
            history.refuse(value)

    def produce(self, rng, node, _):
        self.offer_to(self.orders, "orders", rng, node)

    def produce_jobs(self, rng, node, _):
        self.offer_to(self.jobs, "jobs", rng, node)

    def look(self, rng, node, _):
        """A read of the end of the queue, that must have everything acknowledged so far; or of what comes
        next, waiting for it."""
        number, wait = self.orders.begin(), rng.choice((0, 0, 2))
        start = self.orders.end + 1 if wait else max(1, self.orders.end - rng.choice((5, 300)))
        status, answer = node.request("GET", "/v1/queues/orders",
                                      {"from": start, "max": 5000, **({"wait": f"{wait}s"} if wait else {})})
        self.waited += bool(wait and status == 200 and answer["records"])
        if status == 200 and answer["next"] >= answer["end"]:
            self.orders.read(number, answer["first"], start, answer["end"] - 1, records_of(answer))

    def take(self, rng, node, _):
        wait = rng.choice(({}, {"wait": "500ms"}))
        status, answer = node.request("POST", "/v1/queues/jobs/poll", {"max": rng.randrange(1, 8), **wait})
        if status == 200:
            self.jobs.consumed(records_of(answer))

    def move(self, rng, node, state):
        """A consumer's offset only goes forward."""
        before = state.get("acked", 0)
        status, answer = node.request("GET", "/v1/queues/orders", {"consumer": "c", "max": 3})
        if status != 200:
            return
        shown = answer["records"][0]["offset"] if answer["records"] else answer["next"]
        if before:
            self.orders.offset(shown, before)
        if answer["next"] > before:
            status, moved = rng.choice(self.cluster.nodes).request(
                "PUT", "/v1/queues/orders/offsets", {"consumer": "c", "offset": answer["next"]})
            if status == 200:
                state["acked"] = max(before, moved["offset"])

    def make_queues(self, rng, node, state):
        """Something for those who watch `meta`: queues that are made and deleted again."""
        name = f"passing-{state.setdefault('count', 0)}"
        if node.request("PUT", f"/v1/queues/{name}")[0] in (200, 201):
            self.made.append(name)
            state["count"] += 1
            self.end.wait(rng.random())
            rng.choice(self.cluster.nodes).request("DELETE", f"/v1/queues/{name}")
        self.end.wait(1 + rng.random())

    def watch(self, rng, node, _):
        """Events of `meta`: each change once, in order, whichever nodes tell them."""
        self.follow(node, lambda: self.end.is_set() or rng.random() < 0.05)

    def follow(self, node, enough):
        events = node.watch(self.watch_next)
        status = next(events)
        if status == 410:  # too far behind: what there is, then what changes
            self.watch_next = 0
            self.watches_gone += 1
        if status != 200:
            return False
        for kind, index, data in events:
            if kind == "state":
                self.made.clear()
                self.watch_next = index + 1
            elif kind == "change":
                if index < self.watch_next:
                    raise AssertionError(f"change {index} was told again; {self.watch_next} was to come")
                self.watch_next = index + 1
                self.changes += 1
                self.told.add(data.get("create"))
            elif kind == "heartbeat":
                self.beats += 1
            if kind == "error" or enough():
                return kind == "heartbeat"
        return False

    def watch_everything(self):
        """At the end: every queue that was made has been told, unless what was there was told as a whole."""
        for attempt in range(60):
            try:
                if self.follow(self.cluster.nodes[attempt % len(self.cluster.nodes)],
                               lambda beats=self.beats: self.beats > beats):
                    break
            except OSError:
                pass
            time.sleep(0.5)
        else:
            raise AssertionError("meta cannot be watched")
        missing = [name for name in self.made if name not in self.told]
        if missing:
            raise AssertionError(f"queues were made that no watch told of: {missing[:5]}")
        return f"{self.changes} changes of meta watched, {self.beats} heartbeats, too far behind {self.watches_gone} times"

    def read_everything(self):
        """At the end: every record that is kept, page by page, as one read that began before."""
        number, at, records, first, end = self.orders.begin(), 0, [], None, None
        while end is None or at < end:
            for node in self.cluster.nodes:
                status, answer = node.request("GET", "/v1/queues/orders",
                                              {"max": 5000, **({"from": at} if at else {})})
                if status == 200:
                    break
            else:
                raise AssertionError(f"the queue cannot be read: {status} {answer}")
            first = answer["first"] if first is None else first
            records += records_of(answer)
            at, end = answer["next"], answer["end"]
        self.orders.read(number, first, first, end - 1, records)
        return len(records)
