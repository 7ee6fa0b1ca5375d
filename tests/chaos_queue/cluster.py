"""cluster.py - three ingest nodes, each a host of its own with a disk of its own."""
import http.client
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.parse

FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
HTTP_PORT, PEER_PORT = 8083, 8084
# The longest wait for anything that must happen: bounds a hang, and says nothing about speed. What is
# slow is in the report.
WAIT_S = 180.0


class Node:
    """One node; its disk outlives its processes. Failures of requests are OSError."""

    def __init__(self, cluster, name, host):
        self.cluster, self.name, self.host = cluster, name, host
        self.disk = os.path.join(cluster.folder, name)
        self.own_disk = cluster.hosts.disk(self.disk, cluster.disk_mib)
        self.data = os.path.join(self.disk, "data")
        self.http_port, self.peer_port = host.port(HTTP_PORT), host.port(PEER_PORT)
        self.process = None
        self.log = open(os.path.join(cluster.folder, f"{name}.log"), "ab")

    def start(self, *args, env=None):
        peers = [f"{n.name}={n.host.ip}:{n.peer_port}" for n in self.cluster.nodes if n is not self]
        command = [self.cluster.program, "ingest", "--data", self.data, "--ingest-id", self.name,
                   "--http-listen", f"{self.host.ip}:{self.http_port}",
                   "--peer-listen", f"{self.host.ip}:{self.peer_port}", "--disk-reserve", "2MiB",
                   "--log-file-bytes", "1MiB", *[x for p in peers for x in ("--peer", p)], *args]
        with self.host.inside():
            self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
                                            env={**os.environ, **(env or {})})

    def running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.running():
            self.process.kill()
        if self.process:
            self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def request(self, method, path, params=None, body=None, timeout=15.0):
        query = "?" + urllib.parse.urlencode(params) if params else ""
        connection = http.client.HTTPConnection(self.host.ip, self.http_port, timeout=timeout)
        try:
            connection.request(method, path + query, body=body,
                               headers={"Content-Type": "application/octet-stream"})
            answer = connection.getresponse()
            text = answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, {}

    def watch(self, start):
        """Events of /v1/watch as (kind, index, data), after the status. OSError: it broke off."""
        connection = http.client.HTTPConnection(self.host.ip, self.http_port, timeout=15.0)
        try:
            connection.request("GET", "/v1/watch" + (f"?from={start}" if start else ""))
            answer = connection.getresponse()
            yield answer.status
            event = {}
            for line in answer if answer.status == 200 else ():
                key, _, value = line.decode().rstrip("\n").partition(": ")
                if key:
                    event[key] = value
                elif event:
                    yield event["event"], int(event.get("id", 0)), json.loads(event["data"])
                    event = {}
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def ready(self):
        try:
            return self.request("GET", "/readyz", timeout=2)[0] == 200
        except OSError:
            return False

    def alive(self):
        try:
            return self.request("GET", "/livez", timeout=2)[0] == 200
        except OSError:
            return False


class Cluster:
    def __init__(self, program, folder, hosts, names, disk_mib):
        self.program, self.folder, self.hosts, self.disk_mib = program, folder, hosts, disk_mib
        self.nodes, self.queues = [], ["meta"]
        self.nodes += [Node(self, name, hosts[name]) for name in names]

    def wait(self, what, condition, seconds=WAIT_S):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {seconds:.0f} s")
            time.sleep(0.05)

    def change(self, change, name, seconds=WAIT_S):
        """Ask for a change of members until it is done."""
        answers = []

        def done():
            for node in self.nodes:
                try:
                    status, answer = node.request("POST", "/v1/members", {"change": change, "name": name}, timeout=10)
                except OSError:
                    continue
                # What is already so is an error; so is a member who is gone already.
                if status == 200 or (status in (400, 404, 409) and answers):
                    return True
                answers.append((status, answer))
            return False
        try:
            self.wait(f"members {change} {name}", done, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; answers: {answers[-3:]}") from error

    def begin(self):
        first, *others = self.nodes
        first.start("--bootstrap")
        self.wait("the first node", first.ready)
        for node in others:
            node.start()
            self.wait(node.name, node.alive)
            self.change("add", node.name)
            self.change("promote", node.name)

    def voters(self, node, queue):
        status, answer = node.request("GET", f"/v1/queues/{queue}/status", timeout=5)
        members = answer.get("members", []) if status == 200 else []
        return {m["incarnation"] for m in members if m["role"] == "voter"} if len(members) == len(self.nodes) else set()

    def settled(self):
        """Every queue has all nodes as voters, as every node knows: only then may another one be lost."""
        try:
            known = [[self.voters(node, queue) for node in self.nodes] for queue in self.queues]
        except OSError:
            return False
        return all(len(sets[0]) == len(self.nodes) and all(s == sets[0] for s in sets) for sets in known)

    def rebuild(self, node):
        """A node whose disk is lost comes back as a new member."""
        node.kill()
        shutil.rmtree(node.data, ignore_errors=True)
        self.change("remove", node.name)
        node.start()
        self.wait(node.name, node.alive)
        self.change("add", node.name)
        self.change("promote", node.name)
        self.wait("all queues to have their voters", self.settled)

    def end(self):
        for node in self.nodes:
            if node.running():
                node.thaw()
            node.kill()
            node.log.close()
            if node.own_disk:
                self.hosts.undisk(node.disk)
