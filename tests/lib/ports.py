"""ports - TCP ports of the loopback for servers under test."""
import random
import socket


def free_port():
    """A port that stays free until a server takes it: not one that the system gives to outgoing
    connections, and claimed against the other tests that run meanwhile for as long as this one does."""
    for port in random.SystemRandom().sample(range(10000, 32000), 1000):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0promfabric-test-port-{port}")  # no file; goes with the process
            with socket.socket() as s:
                s.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            continue
        claim.detach()
        return port
    raise RuntimeError("no port of the loopback is free")
