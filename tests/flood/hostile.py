"""hostile.py - clients that mean harm. Each is a function of a Target that does one round of it; what
the server says is counted, never believed."""
import http.client
import json
import random
import socket
import string
import struct
import time
import urllib.parse


class Target:
    """Where to attack: the API's port, the tenant whose key is abused, and a range of its data."""

    def __init__(self, port, tenant, start, end):
        self.port, self.tenant, self.start, self.end = port, tenant, start, end

    def connect(self, receive_bytes=None):
        """From some address that is not the polite client's."""
        sock = socket.socket()
        sock.settimeout(15)
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.bind((f"127.0.0.{random.randint(2, 5)}", 0))
        sock.connect(("127.0.0.1", self.port))
        return sock

    def ask(self, method, path, params=None, body=None, headers=None):
        """The status, and the answer if it is small."""
        sock = self.connect()
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.sock = sock
        try:
            if params is not None:
                path += "?" + urllib.parse.urlencode(params, doseq=True)
            connection.request(method, path, body=body,
                               headers={"X-Scope-OrgID": self.tenant, **(headers or {})})
            response = connection.getresponse()
            return response.status, response.read(1 << 16), dict(response.getheaders())
        finally:
            connection.close()

    def large(self, path="/api/v1/query_range"):
        return (f"GET {path}?query=temperature&start={self.start}&end={self.end}&step=1 HTTP/1.1\r\n"
                f"Host: localhost\r\nX-Scope-OrgID: {self.tenant}\r\n\r\n").encode()


def reset(sock):
    """Away without a word: the peer gets a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def slow_reader(target):
    """Much is asked for and nearly nothing read, for a while."""
    sock = target.connect(receive_bytes=4096)
    if random.random() < 0.5:
        sock.sendall(target.large())
    else:
        body = json.dumps({"q": "temperature", "s": target.start, "e": target.end,
                           "step": "1s", "progress": "true"}).encode()
        sock.sendall(b"POST /api/v1/metrics/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                     b"application/json\r\nX-Scope-OrgID: " + target.tenant.encode() +
                     b"\r\nAccept-Encoding: " + random.choice([b"gzip", b"zstd", b"identity"]) +
                     b"\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
    deadline = time.monotonic() + random.uniform(1, 20)
    while time.monotonic() < deadline:
        time.sleep(random.uniform(0.1, 1))
        if not sock.recv(random.randint(1, 300)):
            break
    random.choice([reset, socket.socket.close])(sock)


def half_request(target):
    """A request that never ends: in its line, its headers or its body."""
    whole = (f"POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nX-Scope-OrgID: {target.tenant}\r\n"
             "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000000\r\n\r\n"
             + "query=" + "x" * 100_000).encode()
    sock = target.connect()
    for byte in range(0, random.randint(1, len(whole)), 4001):
        sock.sendall(whole[byte:byte + 4001])
        time.sleep(0.002)
    time.sleep(random.uniform(0, 3))
    random.choice([reset, socket.socket.close])(sock)


def connection_flood(target):
    """A hundred connections at once that say nothing."""
    socks = []
    try:
        for _ in range(100):
            socks.append(target.connect())
        time.sleep(random.uniform(0, 2))
    finally:
        for sock in socks:
            sock.close()


def doubling(depth):
    """A label of some bytes, doubled: an empty one would stay so."""
    text = 'label_replace(up, "a", "0123456789abcdef", "", "")'
    for _ in range(depth):
        text = f'label_join({text}, "a", "", "a", "a")'
    return text


HUGE = (
    lambda: "(" * 5000 + "1" + ")" * 5000,
    lambda: doubling(random.randint(20, 200)),
    lambda: " + ".join(["up"] * 2000),
    lambda: 'up{a=~"' + "(x{1,500}){1,500}" * 3 + '"}',
    lambda: 'label_replace(up, "a", "' + "$1" * 5000 + '", "job", "(.*)")',
    lambda: 'label_join(%s, "b", "", %s)' % (doubling(16), ", ".join(['"a"'] * 4000)),
    lambda: "sum(" * 400 + "temperature" + ")" * 400,
    lambda: "x" * 900_000,
    lambda: "rate(temperature[1s:1ms])",
    lambda: "{__name__=~\".+\"}[365d]",
    lambda: "".join(random.choice(string.printable) for _ in range(3000)),
    lambda: "temperature * on() group_left temperature",
)


def huge_expression(target):
    text = random.choice(HUGE)()
    path = random.choice(["/api/v1/query", "/api/v1/format_query", "/api/v1/parse_query"])
    body = urllib.parse.urlencode({"query": text, "time": target.end}).encode()
    return target.ask("POST", path, body=body, headers={
        "Content-Type": "application/x-www-form-urlencoded"})[0]


def many_matches(target):
    return target.ask("GET", "/api/v1/series", {
        "match[]": ['{__name__=~"%s.*"}' % c for c in string.ascii_letters]})[0]


def canceler(target):
    """Asks, and takes it back: by name, or by going."""
    sock = target.connect(receive_bytes=4096)
    sock.sendall(target.large())
    time.sleep(random.uniform(0, 0.3))
    status, body, _ = target.ask("GET", "/api/v1/queries", {"limit": 1000})
    if status == 200 and random.random() < 0.7:
        try:
            names = [query["query_id"] for query in json.loads(body)["data"]
                     if query["tenant"] == target.tenant]
        except ValueError:
            names = []  # more than was read
        for name in random.sample(names, min(3, len(names))):
            target.ask("DELETE", f"/api/v1/queries/{name}")
    reset(sock)


def heavy(target):
    """A large answer, read to its end."""
    return target.ask("GET", "/api/v1/query_range", {
        "query": random.choice(["temperature", "sum by (instance) (rate(http_requests_total[5m]))",
                                "temperature * 2 > 0"]),
        "start": target.start, "end": target.end, "step": 1, "timeout": "20s"},
        headers={"Accept-Encoding": random.choice(["gzip", "zstd", "gzip;q=0, *;q=x", ""])})[0]


def damaged_data(target):
    """Segments that are none."""
    return target.ask("GET", "/api/v1/query", {"query": "up", "time": target.end},
                      headers={"X-Scope-OrgID": "damaged"})[0]


def garbage(target):
    """Bytes that are no request, or nearly one."""
    sock = target.connect()
    sock.sendall(random.choice([
        bytes(random.getrandbits(8) for _ in range(2000)),
        b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
        b"POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n",
        b"GET /api/v1/query?" + b"a=b&" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200]))
    try:
        sock.recv(1000)
    finally:
        sock.close()


# Name, what it does, threads that do it.
ATTACKS = (
    ("slow readers", slow_reader, 40),
    ("half requests", half_request, 8),
    ("connection floods", connection_flood, 3),
    ("huge expressions", huge_expression, 4),
    ("many matches", many_matches, 1),
    ("cancels", canceler, 4),
    ("heavy queries", heavy, 4),
    ("damaged data", damaged_data, 1),
    ("garbage", garbage, 3),
)
