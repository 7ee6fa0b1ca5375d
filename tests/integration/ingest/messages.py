"""messages.py - requests with samples as senders make them, and what a partition's log has of them.

Protobuf, snappy blocks and records are read and written by hand, so that nothing is shared with what is
tested."""
import struct
import time

STALE_BITS = 0x7FF0000000000002
STALE = struct.unpack("<d", struct.pack("<Q", STALE_BITS))[0]
TYPE_1 = "application/x-protobuf"
TYPE_2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"


def now_ms():
    return int(time.time() * 1000)


# --- protobuf ---

def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def zigzag(n):
    return (n << 1) ^ (n >> 63)


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def number(n, value):
    return varint(n << 3) + varint(value)


def double(n, value):
    bits = value if isinstance(value, bytes) else struct.pack("<d", value)
    return varint(n << 3 | 1) + bits


def snappy(data):
    """A block of literals."""
    out = bytearray(varint(len(data)))
    for at in range(0, len(data), 65536):
        piece = data[at:at + 65536]
        out += b"\xf4" + struct.pack("<H", len(piece) - 1) + piece
    return bytes(out)


def histogram(ts, count=3, total=4.5, schema=0, spans=((0, 2),), deltas=(1, 1), custom=None):
    out = number(1, count) + double(3, total) + number(4, zigzag(schema))
    if custom is None:
        out += double(5, 1e-128) + number(6, 0)
    for offset, length in spans:
        out += field(11, number(1, zigzag(offset)) + number(2, length))
    out += field(12, b"".join(varint(zigzag(d)) for d in deltas))
    out += number(15, ts)
    if custom is not None:
        out += field(16, b"".join(struct.pack("<d", v) for v in custom))
    return out


def encode_text(text):
    return text if isinstance(text, bytes) else text.encode()


class Series:
    """Labels as pairs, in any order; samples as (time, value); the rest as messages."""

    def __init__(self, labels, samples=(), histograms=(), exemplars=(), metadata=None, start=0):
        self.labels = sorted(labels.items()) if isinstance(labels, dict) else list(labels)
        self.samples, self.histograms, self.exemplars = samples, histograms, exemplars
        self.metadata, self.start = metadata, start

    def version_1(self):
        out = b"".join(field(1, field(1, encode_text(n)) + field(2, encode_text(v)))
                       for n, v in self.labels)
        out += b"".join(field(2, double(1, v) + number(2, t)) for t, v in self.samples)
        for labels, value, ts in self.exemplars:
            out += field(3, b"".join(field(1, field(1, encode_text(n)) + field(2, encode_text(v)))
                                     for n, v in labels) + double(2, value) + number(3, ts))
        return out + b"".join(field(4, h) for h in self.histograms)

    def version_2(self, symbols):
        def refs(labels):
            return b"".join(varint(symbols.setdefault(encode_text(x), len(symbols)))
                            for pair in labels for x in pair)
        out = field(1, refs(self.labels))
        for t, v in self.samples:
            out += field(2, double(1, v) + number(2, t)
                         + (number(3, self.start) if self.start else b""))
        out += b"".join(field(3, h) for h in self.histograms)
        for labels, value, ts in self.exemplars:
            out += field(4, field(1, refs(labels)) + double(2, value) + number(3, ts))
        if self.metadata:
            kind, text, unit = self.metadata
            out += field(5, number(1, kind)
                         + number(3, symbols.setdefault(encode_text(text), len(symbols)))
                         + number(4, symbols.setdefault(encode_text(unit), len(symbols))))
        return out


def version_1(series, metadata=()):
    out = b"".join(field(1, s.version_1()) for s in series)
    for kind, name, text, unit in metadata:
        out += field(3, number(1, kind) + field(2, name.encode()) + field(4, text.encode())
                     + field(5, unit.encode()))
    return out


def version_2(series):
    symbols = {b"": 0}
    bodies = [s.version_2(symbols) for s in series]
    return (b"".join(field(4, s) for s in symbols) + b"".join(field(5, b) for b in bodies))


def zstd(data, said=None):
    """One frame of raw blocks, which says how long it is: truly, unless told otherwise."""
    frame = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data) if said is None else said)
    blocks = [data[i:i + 100000] for i in range(0, len(data), 100000)] or [b""]
    for i, block in enumerate(blocks):
        frame += struct.pack("<I", len(block) << 3 | (i == len(blocks) - 1))[:3] + block
    return frame


def zstd_bomb(length, window=0x38):
    """A frame that does not say how long it is, of zeros; @window: its descriptor, 0x38 is 128 KiB."""
    count = -(-length // (1 << 17))
    return b"\x28\xb5\x2f\xfd\x00" + bytes([window]) + b"".join(
        struct.pack("<I", 1 << 20 | 1 << 1 | (i == count - 1))[:3] + b"\0" for i in range(count))


def write(node, body, version=1, headers=None, compressed=True, **more):
    """Status, text, headers."""
    all_headers = {"Content-Type": TYPE_1 if version == 1 else TYPE_2, "Content-Encoding": "snappy",
                   "User-Agent": "test", "X-Prometheus-Remote-Write-Version":
                   "0.1.0" if version == 1 else "2.0.0", **(headers or {})}
    return node.raw("POST", "/api/v1/write", body=snappy(body) if compressed else body,
                    headers={k: v for k, v in all_headers.items() if v is not None}, **more)


def write_series(node, *series, version=1, **more):
    body = version_1(series) if version == 1 else version_2(series)
    return write(node, body, version, **more)


# --- records of a partition ---

class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def take(self, length):
        piece = self.data[self.at:self.at + length]
        assert len(piece) == length
        self.at += length
        return piece

    def text(self):
        return self.take(self.varint())


def labels_of(data):
    reader, pairs = Reader(data), []
    while reader.at < len(data):
        pairs.append((reader.text().decode(), reader.text().decode()))
    return tuple(pairs)


class Log:
    """What the records of a partition say, as anybody who reads them in order understands them."""

    def __init__(self):
        self.samples = {}    # (tenant, labels, time) -> value, or the bytes of a histogram
        self.starts = {}
        self.numbers = {}    # tenant -> number -> labels
        self.kinds = []
        self.sample_records = self.fresh = 0
        self.extras = []
        self.doubled = 0     # samples that are there twice

    def read(self, data):
        reader = Reader(data)
        assert reader.varint() == 1
        kind, tenant = reader.varint(), reader.text().decode()
        self.kinds.append((kind, tenant))
        if kind == 1:
            self.read_samples(reader, tenant)
        elif kind == 2:
            self.numbers.pop(tenant, None)

    def read_samples(self, reader, tenant):
        self.sample_records += 1
        reader.signed()
        flags = reader.varint()
        if flags & 1:
            reader.take(32)
        if flags & 2:
            self.extras.append(reader.text())
        for _ in range(8):
            reader.varint()
        number = ts = 0
        for _ in range(reader.varint()):
            number += reader.signed()
            flags = reader.varint()
            if flags & 1:
                self.fresh += 1
                self.numbers.setdefault(tenant, {})[number] = labels_of(reader.text())
            labels = self.numbers[tenant][number]
            for _ in range(reader.varint()):
                ts += reader.signed()
                start = reader.signed() if flags & 2 else 0
                if flags & 4 and reader.varint() == 1:
                    value = reader.text()
                else:
                    value = reader.take(8)
                self.doubled += (tenant, labels, ts) in self.samples
                self.samples[tenant, labels, ts] = value
                if start:
                    self.starts[tenant, labels, ts] = start
        assert reader.at == len(reader.data)

    def value(self, labels, ts, tenant="default"):
        labels = tuple(sorted(labels.items())) if isinstance(labels, dict) else labels
        found = self.samples.get((tenant, labels, ts))
        return struct.unpack("<d", found)[0] if found is not None and len(found) == 8 else found


def log_of(node, partition=0):
    log = Log()
    for _, data in node.read_all(f"metrics-{partition}"):
        log.read(data)
    return log


def text(node, body, headers=None, path="/api/v1/import/prometheus"):
    return node.raw("POST", path, body=body if isinstance(body, bytes) else body.encode(),
                    headers={"Content-Type": "text/plain", **(headers or {})})
