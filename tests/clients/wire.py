"""wire - requests as bytes and answers as they came, without a library that would put either right."""
import gzip
import json
import socket
import urllib.parse
import zlib

TIMEOUT_S = 30
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Request:
    """One question. @raw, if given, goes out as it is; %HOST% in it stands for the server's address."""

    def __init__(self, family, method, path, params=(), body=None, headers=None, raw=None):
        self.family, self.method, self.path = family, method, path
        self.params = list(params.items()) if isinstance(params, dict) else list(params)
        self.body, self.headers, self.raw = body, dict(headers or {}), raw

    def target(self):
        if not self.params or self.method == "POST" and self.body is None:
            return self.path
        return self.path + "?" + urllib.parse.urlencode(self.params)

    def bytes(self, host):
        if self.raw is not None:
            return self.raw.replace(b"%HOST%", host.encode())
        body, headers = self.body, {"Host": host, "Connection": "close", **self.headers}
        if self.method == "POST" and body is None:
            body = urllib.parse.urlencode(self.params).encode()
            headers.setdefault("Content-Type", FORM["Content-Type"])
        if body is not None:
            headers.setdefault("Content-Length", str(len(body)))
        head = f"{self.method} {self.target()} HTTP/1.1\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return head.encode() + b"\r\n" + (body or b"")

    def __str__(self):
        if self.raw is not None:
            return repr(self.raw[:160])[2:-1]
        text = f"{self.method} {self.path}"
        if self.params:
            text += " " + "&".join(f"{k}={v}" for k, v in self.params)[:300]
        if self.headers:
            text += f" {self.headers}"
        if self.body is not None:
            text += f" body {self.body[:80]!r}"
        return text


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        """The document with numbers as they were written, or None."""
        try:
            return json.loads(self.body, parse_float=str, parse_int=str)
        except ValueError:
            return None

    def text(self):
        return self.body.decode("utf-8", "replace")


def read_chunks(data):
    out = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        count = int(size.split(b";")[0] or b"0", 16)
        if count == 0:
            return out
        out, data = out + data[:count], data[count + 2:]
    raise ValueError("the answer breaks off")


def read_answer(sock, method):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        if not piece:
            return Answer(0, {}, data)
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    status = int(lines[0].split()[1])
    if status == 100:
        return read_rest(sock, body, method)
    length = headers.get("content-length")
    if method == "HEAD" or status in (204, 304):
        return Answer(status, headers, b"")
    while length is None or len(body) < int(length):
        piece = sock.recv(65536)
        if not piece:
            break
        body += piece
    if headers.get("transfer-encoding") == "chunked":
        body = read_chunks(body)
    coding = headers.get("content-encoding")
    if coding == "gzip":
        body = gzip.decompress(body)
    elif coding == "deflate":
        body = zlib.decompress(body)
    return Answer(status, headers, body)


def read_rest(sock, begun, method):
    """The answer that comes behind "100 Continue"."""
    class Joined:
        def __init__(self):
            self.begun = begun

        def recv(self, size):
            out, self.begun = self.begun, b""
            return out or sock.recv(size)
    return read_answer(Joined(), method)


def ask(base, request):
    host = urllib.parse.urlsplit(base).netloc
    name, port = host.split(":")
    with socket.create_connection((name, int(port)), timeout=TIMEOUT_S) as sock:
        try:
            sock.sendall(request.bytes(host))
            return read_answer(sock, request.method)
        except (ConnectionError, TimeoutError) as e:
            return Answer(0, {}, str(e).encode())
