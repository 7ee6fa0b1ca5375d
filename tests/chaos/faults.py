"""faults - what goes wrong, seeded. Every fault leaves the cluster able to recover by itself, or mends
what it broke before it returns.

Several lanes inject at once, each with a generator of its own. The kinds are dealt to the lanes like
cards, all of them before any comes again. Each process is in the hands of one fault at a time."""
import contextlib
import errno
import os
import random
import shutil
import signal
import threading
import time

from hosts import partition, reunite

MEMORY_S = 10  # what a fault left behind may show so much later in an answer
SHIFTS = ("-2h", "+2h", "-30d", "+365d")


class Record:
    def __init__(self, kind, target):
        self.kind, self.target, self.begin, self.end = kind, target, time.monotonic(), None


class Faults:
    """All faults so far, and what the judge wants to know of them."""

    def __init__(self, log):
        self.records, self.lock, self.log, self.zero = [], threading.Lock(), log, time.monotonic()

    @contextlib.contextmanager
    def record(self, kind, target):
        fault = Record(kind, target)
        with self.lock:
            self.records.append(fault)
        self.write(f"begin {kind} {target}")
        try:
            yield
        finally:
            fault.end = time.monotonic()
            self.write(f"end {kind} {target}")

    def write(self, text):
        with self.lock, open(self.log, "a", encoding="utf-8") as f:
            f.write(f"{time.strftime('%H:%M:%S')} {time.monotonic() - self.zero:9.3f} {text}\n")

    def targets(self, kind):
        return {str(fault.target) for fault in self.records if fault.kind == kind}

    def near_records(self, answer):
        for fault in reversed(self.records):
            if fault.begin < answer.begin - 300:
                return
            if fault.begin <= answer.end and (fault.end is None or fault.end + MEMORY_S >= answer.begin):
                yield fault

    def kinds_near(self, answer):
        return {fault.kind for fault in self.near_records(answer)}

    def near(self, kinds, answer):
        found = self.kinds_near(answer)
        return bool(found) if kinds is True else bool(found & kinds)

    @staticmethod
    def api_was_away(api, answer):
        return any(begin <= answer.end + 1 and (end is None or end + 1 >= answer.begin)
                   for begin, end in api.downs[-20:])

    def counts(self):
        counts = {}
        for fault in self.records:
            counts[fault.kind] = counts.get(fault.kind, 0) + 1
        return counts


class Lane(threading.Thread):
    def __init__(self, cluster, faults, judge, seed, place, lanes):
        super().__init__(daemon=True)
        self.cluster, self.faults, self.judge = cluster, faults, judge
        self.rng, self.dealer = random.Random(seed * 77 + place), random.Random(seed)
        self.place, self.lanes = place, lanes
        self.over = threading.Event()
        self.hand = []
        self.home = cluster.hosts["driver"]

    def run(self):
        self.home.settle()
        while not self.over.is_set():
            self.hand = self.hand or self.deal()
            if not self.hand:
                return
            kind = self.hand.pop()
            try:
                self.inject(kind)
            except Exception as e:  # a lane that died would be a run without faults
                self.judge.fail(f"the fault {kind} could not be injected or mended: {e}")
            self.over.wait(self.rng.uniform(0.2, 2))

    def inject(self, kind):
        getattr(self, kind)(kind)

    def deal(self):
        """Each lane shuffles the same deck the same way and takes its own share."""
        deck = list(self.cluster.kinds)
        self.dealer.shuffle(deck)
        return deck[self.place::self.lanes]

    def pause(self, low, high):
        """A fault lasts so long; shorter if the run ends meanwhile."""
        self.over.wait(self.rng.uniform(low, high))

    @contextlib.contextmanager
    def one_of(self, kind, processes):
        """One process that no other fault has in hand, recorded."""
        order = list(processes)
        self.rng.shuffle(order)
        while True:
            for process in order:
                if process.busy.acquire(blocking=False):
                    try:
                        with self.faults.record(kind, process.name):
                            yield process
                    finally:
                        process.busy.release()
                    return
            time.sleep(0.05)

    @contextlib.contextmanager
    def away(self, process):
        window = [time.monotonic(), None]
        process.downs.append(window)
        try:
            yield
        finally:
            window[1] = time.monotonic()

    # --- processes ---

    def kill(self, kind):
        with self.one_of(kind, self.cluster.mortal_workers) as worker:
            worker.kill()
            self.pause(0, 1)
            worker.start()

    def stall(self, kind):
        with self.one_of(kind, self.cluster.workers + self.cluster.apis) as process:
            process.signal(signal.SIGSTOP)
            self.pause(0.2, 3 if process in self.cluster.apis else 6)
            process.signal(signal.SIGCONT)

    def drain(self, kind):
        with self.one_of(kind, self.cluster.mortal_workers) as worker:
            worker.terminate()
            code = worker.wait(60)
            if code != 0:
                self.judge.fail(f"{worker.name}: did not drain: exit code {code}")
                worker.kill()
            worker.start()

    def restart_api(self, kind):
        with self.one_of(kind, self.cluster.mortal_apis) as api, self.away(api):
            if self.rng.random() < 0.5:
                api.kill()
            elif (code := api.stop()) != 0:
                self.judge.fail(f"{api.name}: did not end in time or in order: exit code {code}")
            self.pause(0, 1)
            api.start()
            self.cluster.wait_ready(api)

    def clock_api(self, kind):
        """Restarted with another wall clock while the workers keep theirs; then with the right one."""
        with self.one_of(kind, self.cluster.mortal_apis) as api:
            with self.away(api):
                api.kill()
                api.start_shifted(self.rng.choice(SHIFTS))
                self.cluster.wait_ready(api)
            self.pause(3, 8)
            with self.away(api):
                api.kill()
                api.start()
                self.cluster.wait_ready(api)

    # --- links ---

    def slow_link(self, kind):
        with self.one_of(kind, self.cluster.relayed) as worker:
            relay = self.rng.choice(worker.relays)
            relay.delay_s = self.rng.uniform(0.01, 0.5)
            self.pause(1, 4)
            relay.heal()

    def cut_link(self, kind):
        with self.one_of(kind, self.cluster.relayed) as worker:
            relay = self.rng.choice(worker.relays)
            worker.network.do(relay.cut)
            self.pause(0.1, 3)
            relay.heal()

    def partition(self, kind):
        if self.cluster.hosts.why_plain:
            with self.one_of(kind, self.cluster.relayed) as worker:
                for relay in worker.relays:
                    relay.silent = True
                self.pause(0.5, 6)
                for relay in worker.relays:
                    relay.heal()
            return
        with self.one_of(kind, self.cluster.workers) as worker:
            apis = self.cluster.apis if self.rng.random() < 0.5 else [self.rng.choice(self.cluster.apis)]
            for api in apis:
                partition(worker.host, api.host)
            self.pause(0.5, 6)
            for api in apis:
                reunite(worker.host, api.host)

    def one_way(self, kind):
        with self.one_of(kind, self.cluster.workers) as worker:
            ends = [worker.host, self.rng.choice(self.cluster.apis).host]
            self.rng.shuffle(ends)
            ends[0].refuse_from(ends[1])
            self.pause(0.5, 6)
            ends[0].accept_from(ends[1])

    def loss(self, kind):
        with self.one_of(kind, self.cluster.workers) as worker:
            percent = self.rng.randrange(5, 60)
            for api in self.cluster.apis:
                worker.host.refuse_from(api.host, percent)
                api.host.refuse_from(worker.host, percent)
            self.pause(1, 5)
            for api in self.cluster.apis:
                reunite(worker.host, api.host)

    def client_loss(self, kind):
        with self.one_of(kind, self.cluster.apis) as api:
            client, percent = self.cluster.hosts["client"], self.rng.randrange(5, 15)
            api.host.refuse_from(client, percent)
            client.refuse_from(api.host, percent)
            self.pause(1, 3)
            reunite(api.host, client)

    # --- disks ---

    def fill(self, process):
        """Leaves nothing, or a few kilobytes: some writes then fit and others do not."""
        path = os.path.join(process.disk, "filler")
        with open(path, "wb", buffering=0) as f:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        f.write(bytes(size))
                except OSError as e:
                    if e.errno != errno.ENOSPC:
                        raise
            if self.rng.random() < 0.5:
                f.truncate(max(0, f.tell() - self.rng.randrange(4096, 65536)))
        return path

    def full_disk(self, kind):
        with self.one_of(kind, self.cluster.workers) as worker:
            path = self.fill(worker)
            self.pause(1, 5)
            os.unlink(path)

    def full_disk_api(self, kind):
        with self.one_of(kind, self.cluster.apis) as api:
            path = self.fill(api)
            self.pause(0.5, 2)
            os.unlink(path)

    def damage(self, path):
        try:
            with open(path, "r+b") as f:
                size = os.fstat(f.fileno()).st_size
                if size < 16:
                    return
                if self.rng.random() < 0.4:
                    f.truncate(self.rng.randrange(size))
                else:
                    f.seek(self.rng.randrange(size))
                    old = f.read(1) or b"\0"
                    f.seek(-1, os.SEEK_CUR)
                    f.write(bytes([old[0] ^ (1 << self.rng.randrange(8))]))
        except (OSError, ValueError):
            pass  # it went away: fine

    def corrupt_artifacts(self, kind):
        with self.one_of(kind, self.cluster.workers) as worker:
            end = time.monotonic() + 2
            while time.monotonic() < end and not self.over.is_set():
                for path in worker.files("artifact"):
                    self.damage(path)
                time.sleep(0.005)

    def corrupt_segments(self, kind):
        """While they are in use: open readers are no excuse."""
        with self.one_of(kind, self.cluster.workers) as worker:
            for _ in range(self.rng.randrange(1, 4)):
                for path in worker.files("segment"):
                    if self.rng.random() < 0.5:
                        self.damage(path)
                self.pause(0.1, 1)

    def corrupt_restart(self, kind):
        """What a later process takes over is damaged."""
        with self.one_of(kind, self.cluster.mortal_workers) as worker:
            worker.kill()
            for path in worker.files("segment"):
                self.damage(path)
            worker.start()

    # --- the store ---

    @contextlib.contextmanager
    def cold_worker(self, kind):
        """A worker that has to download everything again while the store fails."""
        with self.one_of(kind, self.cluster.mortal_workers) as worker:
            worker.kill()
            shutil.rmtree(os.path.join(worker.spool, "segments"), ignore_errors=True)
            worker.start()
            yield worker

    def fail_store(self, kind, mode, share, seconds, delay_s=0.0):
        proxy = self.cluster.store.proxy
        with self.cluster.store_busy:  # one at a time: the proxy has one mode
            proxy.fail(mode, share, delay_s)
            try:
                with self.cold_worker(kind):
                    self.over.wait(seconds)
            finally:
                proxy.heal()

    def slow_store(self, kind):
        self.fail_store(kind, "slow", 1.0, self.rng.uniform(3, 8), self.rng.uniform(0.1, 2))

    def store_errors(self, kind):
        self.fail_store(kind, self.rng.choice(["status503", "lost"]), self.rng.uniform(0.2, 1), self.rng.uniform(1, 6))

    def store_cut(self, kind):
        self.fail_store(kind, self.rng.choice(["cut", "reset"]), self.rng.uniform(0.2, 1), self.rng.uniform(1, 6))

    def store_flip(self, kind):
        self.fail_store(kind, "flip", self.rng.uniform(0.1, 0.5), self.rng.uniform(1, 5))

    def store_partition(self, kind):
        store = self.cluster.hosts["store"]
        with self.cold_worker(kind) as worker:
            other = worker if self.rng.random() < 0.7 else self.rng.choice(self.cluster.apis)
            partition(store, other.host)
            self.pause(1, 6)
            reunite(store, other.host)
