"""faults_ring - what goes wrong around storage nodes: a lane of its own, one fault at a time, beside those of the workers that
they are and of ingest nodes.

A disk is taken away, or rots, only while every other copy is there: two of three disks at once are a loss that no ring bears.
Nodes come and go with all other faults around them."""
import contextlib
import os
import shutil
import signal
import time

from faults import Lane
from hosts import partition, reunite
from ring import CALM_S, MIGRATIONS, NODES, QUIET_S, blobs

KINDS = ["kill_keepers", "stall_keepers", "fill_keepers", "wipe_keeper", "rot_keeper", "cut_keeper", "one_way_keeper", "isolate_keeper",
         "loss_keeper", "split_keepers", "keepers_away_ingest", "add_keeper", "remove_keeper", "cancel_keeper"]
NEEDS_NAMESPACES = {"cut_keeper", "one_way_keeper", "isolate_keeper", "loss_keeper", "split_keepers", "keepers_away_ingest"}
NEEDS_DISKS = {"fill_keepers"}
# Faults after which all copies of a segment may be out of reach for a while.
UNREACHED = {"kill", "kill_keepers", "stall", "stall_keepers", "drain", "partition", "one_way", "loss", "cut_link", "slow_link", "wipe_keeper",
             "isolate_keeper", "split_keepers", "corrupt_restart"}


class RingLane(Lane):
    def __init__(self, cluster, faults, judge, seed, ring):
        super().__init__(cluster, faults, judge, seed + 1, 0, 1)
        self.ring = ring

    def deal(self):
        deck = self.cluster.possible(KINDS)
        self.dealer.shuffle(deck)
        return deck

    def whole(self, seconds=QUIET_S):
        """Other faults go on: single nodes are away now and then, and everything has to come together all the same."""
        if problems := self.ring.wait_whole(seconds):
            self.judge.fail(f"the ring is not whole after {seconds} s: {problems[:3]}")

    @contextlib.contextmanager
    def all_of(self, kind, processes):
        """Processes in the hand of one fault, recorded."""
        with contextlib.ExitStack() as held:
            for process in sorted(processes, key=lambda p: p.name):
                held.enter_context(process.busy)
            held.enter_context(self.faults.record(kind, " ".join(p.name for p in processes)))
            yield

    def some(self, most):
        members = self.ring.mortal()
        return self.rng.sample(members, self.rng.randrange(2, min(most, len(members)) + 1))

    # --- processes and disks ---

    def kill_keepers(self, kind):
        """Two of them, or more: what was answered must be on their disks."""
        keepers = self.some(len(self.cluster.workers))
        with self.all_of(kind, keepers):
            for keeper in keepers:
                keeper.kill()
            self.pause(0, 2)
            for keeper in keepers:
                keeper.start()

    def stall_keepers(self, kind):
        keepers = self.some(2)
        with self.all_of(kind, keepers):
            for keeper in keepers:
                keeper.signal(signal.SIGSTOP)
            self.pause(0.5, 5)
            for keeper in keepers:
                keeper.signal(signal.SIGCONT)

    def fill_keepers(self, kind):
        """A majority of many slots has no room: nothing of these is sealed, and nothing is lost."""
        keepers = self.some(3)
        with self.all_of(kind, keepers):
            paths = [self.fill(keeper) for keeper in keepers]
            self.pause(1, 6)
            for path in paths:
                os.unlink(path)

    def wipe_keeper(self, kind):
        self.whole()
        with self.one_of(kind, self.ring.mortal()) as keeper:
            keeper.kill()
            shutil.rmtree(keeper.keep)
            keeper.start()
        self.whole()

    def rot_keeper(self, kind):
        self.whole()
        with self.one_of(kind, self.ring.mortal()) as keeper:
            for path in blobs(keeper).values():
                if self.rng.random() < 0.3:
                    self.damage(path)
        self.whole()

    # --- links ---

    def cut_keeper(self, kind):
        """From some ingest nodes, or all."""
        with self.one_of(kind, self.ring.members()) as keeper:
            nodes = self.rng.sample(self.cluster.ingests, self.rng.randrange(1, len(self.cluster.ingests) + 1))
            for node in nodes:
                partition(keeper.host, node.host)
            self.pause(1, 7)
            for node in nodes:
                reunite(keeper.host, node.host)

    def one_way_keeper(self, kind):
        """Requests arrive and answers do not, or the other way round."""
        with self.one_of(kind, self.ring.members()) as keeper:
            deaf = self.rng.random() < 0.5
            others = [process.host for process in self.cluster.ingests + self.cluster.workers if process is not keeper]
            for other in others:
                (keeper.host.refuse_from(other) if deaf else other.refuse_from(keeper.host))
            self.pause(1, 6)
            for other in others:
                reunite(keeper.host, other)

    def isolate_keeper(self, kind):
        with self.one_of(kind, self.ring.members()) as keeper:
            others = [process.host for process in self.cluster.processes() if process is not keeper]
            for other in others:
                partition(keeper.host, other)
            self.pause(1, 8)
            for other in others:
                reunite(keeper.host, other)

    def loss_keeper(self, kind):
        with self.one_of(kind, self.ring.members()) as keeper:
            percent = self.rng.randrange(5, 40)
            for node in self.cluster.ingests:
                keeper.host.refuse_from(node.host, percent)
                node.host.refuse_from(keeper.host, percent)
            self.pause(1, 5)
            for node in self.cluster.ingests:
                reunite(keeper.host, node.host)

    def split_keepers(self, kind):
        """Two halves of the ring do not reach each other; ingest nodes and APIs reach both."""
        keepers = self.ring.members()
        self.rng.shuffle(keepers)
        half = len(keepers) // 2
        with self.faults.record(kind, " ".join(k.name for k in keepers[:half])):
            for a in keepers[:half]:
                for b in keepers[half:]:
                    partition(a.host, b.host)
            self.pause(1, 8)
            for a in keepers[:half]:
                for b in keepers[half:]:
                    reunite(a.host, b.host)

    def keepers_away_ingest(self, kind):
        """Nothing can be sealed for longer than ranges take to close."""
        pairs = [(keeper.host, node.host) for keeper in self.cluster.workers for node in self.cluster.ingests]
        with self.faults.record(kind, "all"):
            for a, b in pairs:
                partition(a, b)
            self.pause(11, 16)
            for a, b in pairs:
                reunite(a, b)

    # --- nodes come and go ---

    def ended(self, number):
        """What became of a migration, with all other faults around it."""
        end = time.monotonic() + QUIET_S
        while (now := self.ring.migration(number)) and now["status"] in ("running", "rolling_back"):
            if time.monotonic() > end:
                self.judge.fail(f"migration {number} did not end within {QUIET_S} s: {now}")
                return "hangs"
            time.sleep(0.2)
        return now["status"] if now else "forgotten"

    def add(self, keeper):
        """Number of the migration. A name that was removed is free once its change is over and cleaned up."""
        end = time.monotonic() + QUIET_S
        while True:
            status, answer = self.ring.ask("POST", NODES, name=keeper.name, url=keeper.url)
            if status == 200:
                return answer.get("migration")
            if status != 409 or time.monotonic() > end:
                raise RuntimeError(f"{keeper.name} cannot be added: {status} {answer}")
            time.sleep(0.3)

    def add_keeper(self, kind):
        if not self.ring.spare():
            self.remove_keeper("remove_keeper")
        keeper = self.ring.spare()[0]
        with self.faults.record(kind, keeper.name):
            number = self.add(keeper)
            if number:
                self.faults.write(f"migration {number}: {self.ended(number)}")
        self.whole()

    def remove_keeper(self, kind):
        """What it held is gone afterwards, and with it its disk: others must have everything by then."""
        if self.ring.spare():
            self.add_keeper("add_keeper")
        keeper = self.rng.choice(self.ring.mortal())
        with self.faults.record(kind, keeper.name):
            number = self.ring.must("DELETE", f"{NODES}/{keeper.name}").get("migration")
            if number:
                self.faults.write(f"migration {number}: {self.ended(number)}")
            with keeper.busy:
                if keeper in self.ring.spare():
                    keeper.kill()
                    shutil.rmtree(keeper.keep)
                    keeper.start()
        self.whole()

    def cancel_keeper(self, kind):
        """Added, and told to go back in the middle of it."""
        if not self.ring.spare():
            self.remove_keeper("remove_keeper")
        keeper = self.ring.spare()[0]
        with self.faults.record(kind, keeper.name):
            number = self.add(keeper)
            self.pause(0.2, 3)
            if number:
                self.ring.ask("DELETE", f"{MIGRATIONS}/{number}", reason="the campaign's")
                self.faults.write(f"migration {number}: {self.ended(number)}")
        self.whole(CALM_S)
