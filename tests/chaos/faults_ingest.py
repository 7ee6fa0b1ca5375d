"""faults_ingest - what goes wrong around ingest nodes: a lane of its own, one fault at a time.

Three nodes bear the loss of one. Some faults take more of them at once; then writes and fresh reads wait, and
must go on when it is over. Whatever happens, nothing acknowledged may be lost, doubled or invisible."""
import contextlib
import os
import shutil
import signal
import time

from faults import Lane
from hosts import partition, reunite

KINDS = ["kill_ingest", "kill_leader", "kill_all_ingest", "stall_ingest", "drain_ingest", "clock_ingest",
         "full_disk_ingest", "wipe_ingest", "cut_ingest", "one_way_ingest", "isolate_ingest", "loss_ingest", "unreachable_ingest",
         "store_away_ingest"]
NEEDS_NAMESPACES = {"cut_ingest", "one_way_ingest", "isolate_ingest", "loss_ingest", "unreachable_ingest",
                    "store_away_ingest"}
SHIFTS = ("-3d", "+3d", "-1h", "+90s")
RECOVER_S = 120  # a busy machine's; what it took is in the report


class IngestLane(Lane):
    def __init__(self, cluster, faults, judge, seed, live):
        super().__init__(cluster, faults, judge, seed, 0, 1)
        self.live = live
        self.nodes = cluster.ingests
        self.gaps = {}  # by kind: the longest time without an acknowledgement

    def deal(self):
        deck = self.cluster.possible(KINDS)
        self.dealer.shuffle(deck)
        return deck

    def inject(self, kind):
        """A fault, and then writers must be heard again."""
        self.live.gap = 0.0
        super().inject(kind)
        over = time.monotonic()
        while self.live.last_ack < over and time.monotonic() < over + RECOVER_S:
            time.sleep(0.02)
        if self.live.last_ack < over:
            self.judge.fail(f"{kind} is over for {RECOVER_S} s, but no write was acknowledged")
        self.gaps.setdefault(kind, []).append(self.live.gap)
        for node in self.nodes:
            if lost := node.metric("promfabric_ingest_head_unknown_series_total"):
                self.judge.fail(f"{node.name}: {lost:.0f} samples of series that it does not know")

    @contextlib.contextmanager
    def all_of(self, kind, nodes):
        """Nodes in the hand of one fault, recorded."""
        with contextlib.ExitStack() as held:
            for node in sorted(nodes, key=lambda n: n.name):
                held.enter_context(node.busy)
            held.enter_context(self.faults.record(kind, " ".join(n.name for n in nodes)))
            yield

    # --- processes ---

    def kill_ingest(self, kind):
        with self.one_of(kind, self.nodes) as node:
            node.kill()
            self.pause(0.1, 4)
            node.start()

    def kill_leader(self, kind):
        node = max(self.nodes, key=lambda n: n.leads())
        with self.all_of(kind, [node]):
            node.kill()
            self.pause(2, 4)
            node.start()

    def kill_all_ingest(self, kind):
        with self.all_of(kind, self.nodes):
            for node in self.nodes:
                node.kill()
            self.pause(0, 1)
            for node in self.nodes:
                node.start()
            for node in self.nodes:
                self.cluster.wait_ready(node)

    def stall_ingest(self, kind):
        with self.one_of(kind, self.nodes) as node:
            node.signal(signal.SIGSTOP)
            self.pause(0.3, 6)
            node.signal(signal.SIGCONT)

    def drain_ingest(self, kind):
        """It closes its ranges, hands its leadership over and ends by itself."""
        with self.one_of(kind, self.nodes) as node:
            node.terminate()
            code = node.wait(60)
            if code != 0:
                self.judge.fail(f"{node.name}: did not drain: exit code {code}")
                node.kill()
            node.start()
            self.cluster.wait_ready(node)

    def clock_ingest(self, kind):
        """Restarted with another wall clock; then with the right one."""
        with self.one_of(kind, self.nodes) as node:
            node.kill()
            node.start_shifted(self.rng.choice(SHIFTS))
            self.cluster.wait_ready(node)
            self.pause(2, 6)
            node.kill()
            node.start()
            self.cluster.wait_ready(node)

    # --- disks ---

    def full_disk_ingest(self, kind):
        """Of one node, or of a majority: then samples are 503 while queries go on."""
        nodes = self.rng.sample(self.nodes, self.rng.choice((1, 2)))
        with self.all_of(kind, nodes):
            paths = [self.fill(node) for node in nodes]
            self.pause(1, 6)
            for path in paths:
                os.unlink(path)

    def wipe_ingest(self, kind):
        """A disk is lost with all that was on it: its node is removed, and added as a new one."""
        with self.one_of(kind, self.nodes) as node:
            other = self.rng.choice([n for n in self.nodes if n is not node])
            node.kill()
            shutil.rmtree(os.path.join(node.disk, "data"))
            other.change("remove", node)
            node.start()
            other.change("add", node)
            other.change("promote", node)
            self.cluster.wait_settled()

    # --- links ---

    def cut_ingest(self, kind):
        nodes = self.rng.sample(self.nodes, 2)
        with self.all_of(kind, nodes):
            partition(nodes[0].host, nodes[1].host)
            self.pause(1, 7)
            reunite(nodes[0].host, nodes[1].host)

    def one_way_ingest(self, kind):
        nodes = self.rng.sample(self.nodes, 2)
        with self.all_of(kind, nodes):
            nodes[0].host.refuse_from(nodes[1].host)
            self.pause(1, 7)
            nodes[0].host.accept_from(nodes[1].host)

    def isolate_ingest(self, kind):
        """A node hears no other, or no other hears it, or both; clients and APIs reach it all the same."""
        with self.one_of(kind, self.nodes) as node:
            how = self.rng.choice(("deaf", "mute", "both"))
            others = [other for other in self.nodes if other is not node]
            for other in others:
                if how != "mute":
                    node.host.refuse_from(other.host)
                if how != "deaf":
                    other.host.refuse_from(node.host)
            self.pause(1, 7)
            for other in others:
                reunite(node.host, other.host)

    def loss_ingest(self, kind):
        with self.one_of(kind, self.nodes) as node:
            percent = self.rng.randrange(5, 50)
            others = [other for other in self.nodes if other is not node]
            for other in others:
                node.host.refuse_from(other.host, percent)
                other.host.refuse_from(node.host, percent)
            self.pause(1, 5)
            for other in others:
                reunite(node.host, other.host)

    def unreachable_ingest(self, kind):
        """APIs, or workers, or clients do not reach a node that is well."""
        with self.one_of(kind, self.nodes) as node:
            who = self.rng.choice(([p.host for p in self.cluster.apis], [p.host for p in self.cluster.workers],
                                   [self.cluster.hosts["client"]]))
            for host in who:
                partition(node.host, host)
            self.pause(1, 6)
            for host in who:
                reunite(node.host, host)

    # --- the store ---

    def store_away_ingest(self, kind):
        """Nothing can be sealed for longer than ranges take to close."""
        store = self.cluster.hosts["store"]
        with self.faults.record(kind, "store"):
            for node in self.nodes:
                partition(store, node.host)
            self.pause(11, 16)
            for node in self.nodes:
                reunite(store, node.host)
