"""run.py - three ingest nodes under faults, clients that remember what they were told, and a judge.

usage: run.py --promfabric PROGRAM --judge PROGRAM [--minutes N] [--seed N] [--report FILE] [--keep]

Each node is a host (a network namespace) with a disk (a tmpfs) of its own. Faults come one after another:
a node is killed, stopped or starved of disk, cut off in both directions or in one, a bit on its disk is
flipped, its clock is wrong, or all nodes are killed at once. In between the queue must work again. All that
clients were told is checked by the judge, which also judges the simulator. Exit code 1 if anything is
wrong; then the logs and histories are kept."""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(TOP, "..", "chaos"))  # behind this folder: names are alike
from clients import Clients  # noqa: E402
from cluster import FAKETIME, WAIT_S, Cluster  # noqa: E402
from hosts import Hosts  # noqa: E402

NAMES = ("a", "b", "c")


class Faults:
    def __init__(self, cluster, clients, rng):
        self.cluster, self.clients, self.rng = cluster, clients, rng
        self.counts, self.skipped, self.slowest = {}, {}, {}
        self.refused_to_start = 0

    def all(self):
        return [self.kill, self.stop, self.cut, self.cut_one_way, self.isolate, self.fill, self.flip,
                self.wipe, self.clock, self.kill_all, self.drain]

    def pause(self, low, high):
        time.sleep(self.rng.uniform(low, high))

    def victim(self):
        return self.rng.choice(self.cluster.nodes)

    def strike(self, fault):
        """One fault, and then the queue must acknowledge again."""
        name = fault.__name__
        why = fault()
        if why:
            self.skipped[name] = why
            return
        self.counts[name] = self.counts.get(name, 0) + 1
        began, acked = time.monotonic(), self.clients.orders.acked
        self.cluster.wait(f"acknowledgements after {name}",
                          lambda: self.clients.orders.acked > acked + 5)
        self.slowest[name] = max(self.slowest.get(name, 0), time.monotonic() - began)
        for node in self.cluster.nodes:
            if not node.running():
                raise AssertionError(f"node {node.name} ended after {name}: see its log")

    def restart(self, node, **how):
        node.start(**how)
        self.cluster.wait(node.name, node.alive)

    def kill(self):
        node = self.victim()
        node.kill()
        self.pause(0.1, 4)
        self.restart(node)

    def drain(self):
        """SIGTERM: it hands its leadership over and ends by itself."""
        node = self.victim()
        node.process.terminate()
        node.process.wait(WAIT_S)
        if node.process.returncode != 0:
            raise AssertionError(f"node {node.name} ended with {node.process.returncode} after SIGTERM")
        self.restart(node)

    def stop(self):
        node = self.victim()
        node.freeze()
        self.pause(0.5, 8)
        node.thaw()

    def no_network(self):
        return self.cluster.hosts.why_plain and f"no network namespaces: {self.cluster.hosts.why_plain}"

    def cut(self):
        return self.no_network() or self.between(both=True)

    def cut_one_way(self):
        return self.no_network() or self.between(both=False)

    def between(self, both):
        a, b = self.rng.sample(self.cluster.nodes, 2)
        a.host.refuse_from(b.host)
        if both:
            b.host.refuse_from(a.host)
        self.pause(1, 9)
        a.host.accept_from(b.host)
        b.host.accept_from(a.host)

    def isolate(self):
        """A node hears nobody, or nobody hears it, or both; clients reach it all the same."""
        if self.no_network():
            return self.no_network()
        node, how = self.victim(), self.rng.choice(("deaf", "mute", "both"))
        others = [n for n in self.cluster.nodes if n is not node]
        for other in others:
            if how != "mute":
                node.host.refuse_from(other.host)
            if how != "deaf":
                other.host.refuse_from(node.host)
        self.pause(1, 9)
        for other in others:
            node.host.accept_from(other.host)
            other.host.accept_from(node.host)

    def fill(self):
        """The disk of one node, or of a majority, has no room for a while."""
        if not self.cluster.nodes[0].own_disk:
            return "no disks of their own: mounting is not permitted"
        victims = self.rng.sample(self.cluster.nodes, self.rng.choice((1, 2)))
        for node in victims:
            with open(os.path.join(node.disk, "filler"), "wb", buffering=0) as filler:
                try:
                    while True:
                        filler.write(bytes(64 << 10))
                except OSError:
                    pass
        self.pause(2, 6)
        for node in victims:
            os.unlink(os.path.join(node.disk, "filler"))

    def log_file(self, node):
        found = [os.path.join(folder, name) for folder, _, names in os.walk(node.data) for name in names
                 if name.startswith("log-") and os.path.getsize(os.path.join(folder, name)) > 4096]
        return self.rng.choice(sorted(found)) if found else None

    def flip(self):
        """A bit on one node's disk. It notices and does not start, or what was hit was never promised."""
        node = self.victim()
        node.kill()
        path = self.log_file(node)
        if path:
            at = self.rng.randrange(os.path.getsize(path))
            with open(path, "r+b") as file:
                file.seek(at)
                byte = file.read(1)[0] ^ (1 << self.rng.randrange(8))
                file.seek(at)
                file.write(bytes([byte]))
        node.start()
        self.cluster.wait(f"{node.name} to start or refuse", lambda: node.alive() or not node.running())
        if not node.running():
            self.refused_to_start += 1
            self.cluster.rebuild(node)

    def wipe(self):
        """A disk is lost with all that was on it."""
        self.cluster.rebuild(self.victim())

    def clock(self):
        """Restarted with another wall clock; then with the right one."""
        if not os.path.exists(FAKETIME):
            return "libfaketime is not installed"
        tried = subprocess.run([self.cluster.program, "version"], env={**os.environ, "LD_PRELOAD": FAKETIME},
                               capture_output=True, check=False)
        if tried.returncode != 0:
            return "libfaketime does not go with this build"
        node = self.victim()
        node.kill()
        self.restart(node, env={"LD_PRELOAD": FAKETIME, "FAKETIME": self.rng.choice(("-3d", "+3d", "-1h", "+90s")),
                                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"})
        self.pause(2, 5)
        node.kill()
        self.restart(node)
        return None

    def kill_all(self):
        for node in self.cluster.nodes:
            node.kill()
        self.pause(0, 1)
        for node in self.cluster.nodes:
            node.start()
        for node in self.cluster.nodes:
            self.cluster.wait(node.name, node.alive)


def judge(program, history):
    done = subprocess.run([program], stdin=open(history.path), capture_output=True, text=True, timeout=600)
    return done.returncode == 0, done.stdout.strip()


def campaign(args, folder, hosts):
    rng = random.Random(args.seed)
    cluster = Cluster(args.promfabric, folder, hosts, NAMES, disk_mib=args.disk_mib)
    clients = Clients(cluster, folder, args.seed, args.pause)
    faults = Faults(cluster, clients, rng)
    wrong = []
    try:
        cluster.begin()
        for queue, params in (("orders", {}), ("jobs", {"delete_on_consume": "true"})):
            status, answer = cluster.nodes[0].request("PUT", f"/v1/queues/{queue}", params)
            if status not in (200, 201):
                raise AssertionError(f"queue {queue} was not made: {status} {answer}")
            cluster.queues.append(queue)
        cluster.wait("all queues to have their voters", cluster.settled)
        clients.start()
        end, turn = time.monotonic() + args.minutes * 60, []
        while time.monotonic() < end:
            if not turn:
                turn = faults.all()
                rng.shuffle(turn)
            faults.strike(turn.pop())
            time.sleep(rng.uniform(0.2, 1.5))
    except (AssertionError, subprocess.TimeoutExpired) as error:
        wrong.append(str(error))
    finally:
        if clients.threads[0].ident:
            clients.stop()
    try:
        if not wrong:
            print(f"records left at the end: {clients.read_everything()}")
            print(clients.watch_everything())
            print(f"polls that waited and got records: {clients.waited}")
    except (AssertionError, OSError) as error:
        wrong.append(f"at the end: {error}")
    cluster.end()
    wrong += clients.complaints
    lines = []
    for history in (clients.orders, clients.jobs):
        history.close()
        fine, text = judge(args.judge, history)
        lines.append(f"{os.path.basename(history.path)}: {text}; of unknown outcome {history.unknown}; "
                     f"longest time without an acknowledgement {history.longest_gap:.1f} s")
        if not fine:
            wrong.append(f"{history.path}: {text}")
    lines.append("faults: " + ", ".join(f"{name} {count} (works again within {faults.slowest[name]:.1f} s)"
                                        for name, count in sorted(faults.counts.items())))
    lines.append(f"nodes that refused to start after a flipped bit: {faults.refused_to_start}")
    lines += [f"SKIPPED {name}: {why}" for name, why in sorted(faults.skipped.items())]
    return lines, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--promfabric", required=True)
    parser.add_argument("--judge", required=True)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--disk-mib", type=int, default=256)
    parser.add_argument("--pause", type=float, default=0.02, help="seconds at most between a client's requests")
    parser.add_argument("--report")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="promfabric-chaos-queue-")
    hosts = Hosts((*NAMES, "client"))
    hosts["client"].settle()
    lines, wrong = campaign(args, folder, hosts)
    text = "\n".join([f"queue under faults: {args.minutes:g} minutes, seed {args.seed}", *lines,
                      *[f"WRONG: {line}" for line in wrong]])
    print(text)
    if args.report:
        with open(args.report, "w") as file:
            file.write(text + "\n")
    if wrong or args.keep:
        print(f"logs and histories: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if wrong else 0


sys.exit(main())
