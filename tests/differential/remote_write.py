"""remote_write - put samples into a Prometheus server as its remote-write 1.0 protocol wants them.

The only way in that keeps stale markers and native histograms. A request is a small protobuf message in a
snappy block, both written by hand here: literals only, since nobody minds the size."""
import itertools
import struct
import urllib.request

SLICE_MS = 600_000  # samples travel in time order, or the server calls them too old
LITERAL_MAX = 65536
STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]


def is_stale(value):
    return struct.pack("<d", value) == struct.pack("<d", STALE)


def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def time_series(labels, points):
    out = b"".join(field(1, field(1, name.encode()) + field(2, value.encode()))
                   for name, value in sorted(labels.items()))
    for t, value in points:
        if isinstance(value, float):
            out += field(2, b"\x09" + struct.pack("<d", value) + b"\x10" + varint(t))
        else:
            out += field(4, value.message(t))
    return out


def kind(point):
    """The server stores floats, integer and float histograms of a request one kind after the other, and a
    stale marker as what its series had last."""
    if isinstance(point[1], float) and is_stale(point[1]):
        return "stale"
    return "float" if isinstance(point[1], float) else "integer" if point[1].integer else "fraction"


def snappy(data):
    """A snappy block of literals."""
    out = bytearray(varint(len(data)))
    for at in range(0, len(data), LITERAL_MAX):
        piece = data[at:at + LITERAL_MAX]
        out += b"\xf4" + struct.pack("<H", len(piece) - 1) + piece
    return bytes(out)


def post(base, body):
    request = urllib.request.Request(base + "/api/v1/write", data=snappy(body), headers={
        "Content-Encoding": "snappy", "Content-Type": "application/x-protobuf",
        "X-Prometheus-Remote-Write-Version": "0.1.0"})
    with urllib.request.urlopen(request, timeout=30):
        pass


def send(base, series):
    """Write every sample of @series (objects with labels and points) to the server at @base.

    In the order of their labels, since that is the order in which the server will then meet them. A
    series that changes its kind of value goes into several requests."""
    series = sorted(series, key=lambda s: sorted(s.labels.items()))
    begin = min(s.points[0][0] for s in series)
    end = max(s.points[-1][0] for s in series)
    for low in range(begin, end + 1, SLICE_MS):
        bodies = []
        for s in series:
            points = [p for p in s.points if low <= p[0] < low + SLICE_MS]
            for i, (_, run) in enumerate(itertools.groupby(points, kind)):
                if i == len(bodies):
                    bodies.append(b"")
                bodies[i] += field(1, time_series(s.labels, list(run)))
        for body in bodies:
            post(base, body)
