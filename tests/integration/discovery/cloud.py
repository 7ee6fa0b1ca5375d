"""cloud.py - stubs of the services that discovery asks: the Kubernetes API server and ECS.

Each speaks as much of the documented protocol as a client can see: lists in pages, watches from a
version, versions that are forgotten, tokens that are rotated."""
import base64
import http.client
import http.server
import json
import ssl
import threading
import time
import urllib.parse


class Server:
    """An HTTP server on a free port of the loopback, in threads of its own."""

    def __init__(self, tls=None):
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                stub.get(self)

            def do_POST(self):
                stub.post(self)

            def log_message(self, *args):
                pass

        self.lock = threading.Condition()
        self.closed = False
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *args: None  # clients go away as they like
        self.scheme = "http"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(f"{tls}/tls.crt", f"{tls}/tls.key")
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
            self.scheme = "https"
        self.port = self.http.server_port
        self.url = f"{self.scheme}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,))
        self.thread.start()

    def close(self):
        with self.lock:
            if self.closed:
                return
            self.closed = True
            self.lock.notify_all()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()

    @staticmethod
    def answer(handler, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        for name, value in headers:
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)


def slice_of(name, endpoints, ports=(("control", 8082),), family="IPv4", service="workers"):
    """An EndpointSlice. endpoints: (address, conditions)."""
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": family,
            "metadata": {"name": name, "namespace": "metrics",
                         "labels": {"kubernetes.io/service-name": service}},
            "ports": [{"name": port_name, "port": port, "protocol": "TCP"}
                      for port_name, port in ports],
            "endpoints": [{"addresses": [address], "conditions": conditions}
                          for address, conditions in endpoints]}


def status(code, reason, message=""):
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message or reason, "reason": reason, "code": code}


class Kubernetes(Server):
    """EndpointSlices of one namespace: list with limit and continue, watch with versions."""

    def __init__(self, tls=None, token="s3cret", namespace="metrics", service="workers"):
        self.path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        self.selector = f"kubernetes.io/service-name={service}"
        self.slices, self.history = {}, []  # history: (version, type, object)
        self.version, self.forgotten = 100, 0
        self.token, self.page, self.watch = token, 500, True
        self.gone_as_event = False  # a forgotten version: HTTP 410, or an ERROR event
        self.expire_pages = 0  # so many continue tokens turn out to be too old
        self.cut = 0  # so many watches end in the middle of an event
        self.before_watch = None  # called once, before the next watch is looked at
        self.watches = 0
        self.seen = []  # (what, parameters, token)
        super().__init__(tls)

    # --- what a test does ---

    def put(self, *slices):
        """Create or change slices, one version and event each."""
        with self.lock:
            for item in slices:
                name = item["metadata"]["name"]
                self.note("MODIFIED" if name in self.slices else "ADDED", item)
                self.slices[name] = item

    def delete(self, name):
        with self.lock:
            self.note("DELETED", self.slices.pop(name))

    def note(self, kind, item):
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, kind, item))
        self.lock.notify_all()

    def bookmark(self):
        with self.lock:
            self.note("BOOKMARK", {"kind": "EndpointSlice", "metadata": {}})

    def forget(self):
        """Compact: what was listed before now is too old, and open watches end."""
        with self.lock:
            self.version += 1
            self.forgotten = self.version
            self.lock.notify_all()

    def rotate(self, token):
        with self.lock:
            self.token = token

    def count(self, what):
        with self.lock:
            return sum(1 for kind, _, _ in self.seen if kind == what)

    def calls(self, what):
        with self.lock:
            return [(parameters, token) for kind, parameters, token in self.seen if kind == what]

    # --- what the server does ---

    def get(self, handler):
        url = urllib.parse.urlsplit(handler.path)
        parameters = dict(urllib.parse.parse_qsl(url.query))
        token = handler.headers.get("Authorization")
        what = "watch" if parameters.get("watch") == "true" else "list"
        with self.lock:
            allowed = token == f"Bearer {self.token}"
            self.seen.append((what if allowed else "denied", parameters, token))
        if not allowed:
            return self.answer(handler, 401, status(401, "Unauthorized"))
        if url.path != self.path or parameters.get("labelSelector") != self.selector:
            return self.answer(handler, 404, status(404, "NotFound"))
        return self.serve_watch(handler, parameters) if what == "watch" else \
            self.serve_list(handler, parameters)

    def serve_list(self, handler, parameters):
        limit = min(int(parameters.get("limit", 10 ** 9)), self.page if "limit" in parameters
                    else 10 ** 9)
        with self.lock:
            start, version = 0, self.version
            if "continue" in parameters:
                place = json.loads(base64.b64decode(parameters["continue"]))
                start, version = place["start"], place["version"]
                if self.expire_pages or version < self.forgotten:
                    self.expire_pages -= 1
                    return self.answer(handler, 410, status(410, "Expired", "token too old"))
            names = sorted(self.slices)
            metadata = {"resourceVersion": str(version)}
            if start + limit < len(names):
                # Opaque, and full of what must be escaped in a URL.
                metadata["continue"] = base64.b64encode(json.dumps(
                    {"start": start + limit, "version": version, "??": ">>>>>>"}).encode()).decode()
                metadata["remainingItemCount"] = len(names) - start - limit
            items = [self.slices[name] for name in names[start:start + limit]]
        return self.answer(handler, 200, {
            "kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1",
            "metadata": metadata, "items": items})

    def serve_watch(self, handler, parameters):
        since = int(parameters["resourceVersion"])
        with self.lock:
            hook, self.before_watch = self.before_watch, None
            if hook:
                hook()
        end = time.monotonic() + float(parameters["timeoutSeconds"])
        if not self.watch:
            return self.answer(handler, 403, status(403, "Forbidden"))
        if since < self.forgotten and not self.gone_as_event:
            return self.answer(handler, 410, status(410, "Expired", "too old resource version"))
        handler.close_connection = True
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        try:
            self.stream(handler, since, end, parameters.get("allowWatchBookmarks") == "true")
        except OSError:
            pass  # the client went away

    def stream(self, handler, since, end, bookmarks):
        with self.lock:
            self.watches += 1
            number = self.watches
        while True:
            with self.lock:
                self.lock.wait_for(lambda: self.closed or since < self.forgotten or
                                   number < self.watches or
                                   any(v > since for v, _, _ in self.history),
                                   max(0, end - time.monotonic()))
                if self.closed or number < self.watches:
                    return None  # the client has begun another one
                if since < self.forgotten:
                    return self.send(handler, "ERROR", status(410, "Expired"), last=True)
                due = [event for event in self.history if event[0] > since]
                cut = self.cut > 0 and bool(due)
                self.cut -= cut
            if not due:
                return handler.wfile.write(b"0\r\n\r\n")
            for version, kind, item in due:
                since = version
                if cut:
                    return self.send(handler, kind, item, part=True)
                if kind != "BOOKMARK" or bookmarks:
                    self.send(handler, kind, item)

    @staticmethod
    def send(handler, kind, item, last=False, part=False):
        data = json.dumps({"type": kind, "object": item}).encode() + b"\n"
        if part:  # half of what was announced, then the connection is gone
            data = b"%x\r\n%s" % (len(data), data[:len(data) // 2])
        else:  # in two pieces: an event need not come in one
            half = len(data) // 2
            data = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (data[:half], data[half:]))
            data += b"0\r\n\r\n" if last else b""
        handler.wfile.write(data)
        handler.wfile.flush()


class Ecs(Server):
    """ListTasks and DescribeTasks of one service, and a container's credentials endpoint."""

    def __init__(self):
        self.tasks = {}  # arn -> {"address", "lastStatus", "desiredStatus"}
        self.page, self.fail = 100, None
        self.keys, self.authorization = None, None
        self.seen = []  # (action, Authorization, security token, body)
        self.key_requests = []
        super().__init__()

    def get(self, handler):
        """The credentials endpoint of a task."""
        with self.lock:
            self.key_requests.append(handler.headers.get("Authorization"))
            keys, wanted = self.keys, self.authorization
        if handler.headers.get("Authorization") != wanted or not keys:
            return self.answer(handler, 401, {"message": "no"})
        return self.answer(handler, 200, keys)

    def post(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        action = handler.headers["X-Amz-Target"].split(".")[1]
        with self.lock:
            self.seen.append((action, handler.headers["Authorization"],
                              handler.headers.get("X-Amz-Security-Token"), body))
            if self.fail:
                return self.answer(handler, *self.fail)
            result = self.list(body) if action == "ListTasks" else self.describe(body)
        return self.answer(handler, 200, result)

    def list(self, body):
        arns = sorted(arn for arn, task in self.tasks.items()
                      if task.get("desiredStatus", "RUNNING") == body["desiredStatus"])
        start = int(body.get("nextToken", "0").strip("+/="))
        size = min(self.page, body["maxResults"])
        result = {"taskArns": arns[start:start + size]}
        if start + size < len(arns):
            result["nextToken"] = f"{start + size}+/="
        return result

    def describe(self, body):
        assert len(body["tasks"]) <= 100, "DescribeTasks takes at most 100"
        found = [arn for arn in body["tasks"] if arn in self.tasks]
        return {"tasks": [self.task(arn) for arn in found],
                "failures": [{"arn": arn, "reason": "MISSING"} for arn in body["tasks"]
                             if arn not in self.tasks]}

    def task(self, arn):
        task = self.tasks[arn]
        details = [{"name": "subnetId", "value": "subnet-1"},
                   {"name": "networkInterfaceId", "value": "eni-1"}]
        if task.get("address"):
            details.append({"name": "privateIPv4Address", "value": task["address"]})
        return {"taskArn": arn, "lastStatus": task["lastStatus"],
                "desiredStatus": task.get("desiredStatus", "RUNNING"),
                "attachments": [{"type": "ElasticNetworkInterface", "status": "ATTACHED",
                                 "details": details}]}


class Gate(Server):
    """A proxy before a worker's artifacts that holds every download while it is shut."""

    def __init__(self, port):
        self.target, self.open, self.held = port, True, 0
        super().__init__()

    def set(self, is_open):
        with self.lock:
            self.open = is_open
            self.lock.notify_all()

    def get(self, handler):
        with self.lock:
            self.held += not self.open
            self.lock.wait_for(lambda: self.open or self.closed, 30)
        connection = http.client.HTTPConnection("127.0.0.1", self.target, timeout=20)
        connection.request("GET", handler.path, headers={
            name: value for name, value in handler.headers.items() if name.lower() != "host"})
        response = connection.getresponse()
        self.answer(handler, response.status, response.read())
        connection.close()
