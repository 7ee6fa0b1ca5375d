"""read_protocol.py - requests and answers of Prometheus's remote read protocol, written and read by hand, so that nothing
is shared with what is tested."""
import os
import struct
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration", "ingest"))
from messages import field, number, snappy, varint  # noqa: E402


def unsnappy(data):
    """A block, with copies."""
    length, at = read_varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            size = (tag >> 2) + 1
            if size > 60:
                more = size - 60
                size = int.from_bytes(data[at:at + more], "little") + 1
                at += more
            out += data[at:at + size]
            at += size
            continue
        if tag & 3 == 1:
            size, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            more = 2 if tag & 3 == 2 else 4
            size, offset = (tag >> 2) + 1, int.from_bytes(data[at:at + more], "little")
            at += more
        for _ in range(size):
            out.append(out[-offset])
    assert len(out) == length
    return bytes(out)


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of a message: numbers, or bytes."""
    at, out = 0, []
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        elif tag & 7 == 1:
            value, at = data[at:at + 8], at + 8
        else:
            size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
        out.append((tag >> 3, value))
    return out


def labels_of(message):
    return tuple((dict(fields(v))[1].decode(), dict(fields(v)).get(2, b"").decode())
                 for n, v in message if n == 1)


def from_samples(body):
    """[{labels: [(ts, bits)]}] of each query; a histogram is (ts, fields)."""
    queries = []
    for _, result in fields(unsnappy(body)):
        found = {}
        for _, series in fields(result):
            message, points = fields(series), []
            for n, value in message:
                of = dict(fields(value)) if n in (2, 4) else {}
                if n == 2:
                    points.append((of.get(2, 0), struct.unpack("<Q", of.get(1, bytes(8)))[0]))
                elif n == 4:
                    points.append((of.get(15, 0), fields(value)))
            found[labels_of(message)] = points
        queries.append(found)
    return queries


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Bits:
    def __init__(self, data):
        self.bits, self.left = int.from_bytes(data, "big"), len(data) * 8

    def take(self, count):
        self.left -= count
        return self.bits >> self.left & (1 << count) - 1

    def signed(self, count):
        value = self.take(count)
        return value - (1 << count) if value > 1 << count - 1 else value

    def varint(self):
        out = bytearray()
        while not out or out[-1] & 0x80:
            out.append(self.take(8))
        return read_varint(bytes(out), 0)[0]


def from_chunk(data):
    bits, points = Bits(data), []
    count = bits.take(16)
    for i in range(count):
        if i == 0:
            n = bits.varint()
            ts, value, delta, leading, trailing = (n >> 1) ^ -(n & 1), bits.take(64), 0, 0, 0
        else:
            if i == 1:
                delta = bits.varint()
            else:
                size = next((s for s in (0, 14, 17, 20) if not bits.take(1)), 64)
                delta += bits.signed(size) if size else 0
            ts += delta
            if bits.take(1):
                if bits.take(1):
                    leading, size = bits.take(5), bits.take(6) or 64
                    trailing = 64 - leading - size
                value ^= bits.take(64 - leading - trailing) << trailing
        points.append((ts, value))
    assert bits.left < 8
    return points


def from_frames(body, count):
    """The same of a stream, whose checksums must be right."""
    queries, at = [{} for _ in range(count)], 0
    while at < len(body):
        size, at = read_varint(body, at)
        checksum, message = body[at:at + 4], body[at + 4:at + 4 + size]
        assert int.from_bytes(checksum, "big") == crc32c(message)
        at += 4 + size
        of = fields(message)
        series = fields(dict(of)[1])
        points = queries[dict(of).get(2, 0)].setdefault(labels_of(series), [])
        for n, chunk in series:
            if n != 2:
                continue
            chunk = dict(fields(chunk))
            samples = from_chunk(chunk[4])
            assert (samples[0][0], samples[-1][0], chunk[3]) == (chunk[1], chunk[2], 1)
            points += samples
    return queries


TYPES = {"=": 0, "!=": 1, "=~": 2, "!~": 3}


def read_request(queries, forms=()):
    body = b""
    for start, end, matchers in queries:
        query = number(1, start) + number(2, end)
        for name, op, value in matchers:
            query += field(3, number(1, TYPES[op]) + field(2, name.encode()) + field(3, value.encode()))
        body += field(1, query)
    return snappy(body + (field(2, b"".join(varint(f) for f in forms)) if forms else b""))
