"""remote_read - read native histograms back from a Prometheus server, as it keeps them.

Prometheus notes with every histogram whether the counter was reset; it decides so when it stores them,
and warnings depend on it. No answer shows the notes; remote read does."""
import struct
import urllib.request

import native
import remote_write
from remote_write import field, varint

REGEX = 2  # type of a matcher


def take_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of a message: int for varints, bytes for the rest."""
    at = 0
    while at < len(data):
        key, at = take_varint(data, at)
        if key & 7 == 0:
            value, at = take_varint(data, at)
        else:
            size = 8
            if key & 7 == 2:
                size, at = take_varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def unsnappy(data):
    """What is in a snappy block."""
    size, at = take_varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag, at = data[at], at + 1
        kind, length = tag & 3, (tag >> 2) + 1
        if kind == 0:
            if length > 60:
                extra = length - 60
                length, at = int.from_bytes(data[at:at + extra], "little") + 1, at + extra
            out += data[at:at + length]
            at += length
            continue
        if kind == 1:
            length, offset, at = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at], at + 1
        else:
            width = 2 if kind == 2 else 4
            offset, at = int.from_bytes(data[at:at + width], "little"), at + width
        for _ in range(length):
            out.append(out[-offset])
    if len(out) != size:
        raise ValueError(f"snappy block of {len(out)} bytes, announced {size}")
    return bytes(out)


def unzigzag(n):
    return n >> 1 ^ -(n & 1)


def signed_varints(data):
    at = 0
    while at < len(data):
        value, at = take_varint(data, at)
        yield unzigzag(value)


def double(data):
    return struct.unpack("<d", data)[0]


def side(spans, deltas, counts):
    """{index: count}, empty buckets included."""
    if deltas:
        counts, total = [], 0
        for delta in deltas:
            total += delta
            counts.append(total)
    out, index, at = {}, 0, 0
    for span in spans:
        parts = dict(fields(span))
        index += unzigzag(parts.get(1, 0))
        for _ in range(parts.get(2, 0)):
            out[index] = counts[at]
            index, at = index + 1, at + 1
    return out


def histogram(message):
    """(time, Histogram, or the stale marker)."""
    parts, spans = {}, {8: [], 11: []}
    for number, value in fields(message):
        if number in spans:
            spans[number].append(value)
        else:
            parts[number] = value
    h = native.Histogram(unzigzag(parts.get(4, 0)), double(parts[5]) if 5 in parts else 0.0, integer=2 not in parts,
                         hint=parts.get(14, 0))
    h.sum = double(parts[3]) if 3 in parts else 0.0
    if remote_write.is_stale(h.sum):
        return parts[15], remote_write.STALE
    h.zero_count = double(parts[7]) if 7 in parts else parts.get(6, 0)
    h.bounds = struct.unpack(f"<{len(parts.get(16, b'')) // 8}d", parts.get(16, b""))
    for base, into in ((8, h.negative), (11, h.positive)):
        doubles = parts.get(base + 2, b"")
        into.update(side(spans[base], list(signed_varints(parts.get(base + 1, b""))),
                         struct.unpack(f"<{len(doubles) // 8}d", doubles)))
    h.extra = (double(parts[2]) if 2 in parts else parts.get(1, 0)) - h.count
    return parts[15], h


def series(message):
    labels, points = {}, []
    for number, value in fields(message):
        if number == 1:
            pair = dict(fields(value))
            labels[pair[1].decode()] = pair[2].decode()
        elif number == 2:
            parts = dict(fields(value))
            points.append((parts[2], double(parts[1]) if 1 in parts else 0.0))
        elif number == 4:
            points.append(histogram(value))
    return labels, sorted(points, key=lambda p: p[0])


def fetch(base, names, begin_ms, end_ms):
    """[(labels, [(time, float or Histogram)...])...] of the metrics whose names match @names."""
    matcher = native.whole(1, REGEX) + field(2, b"__name__") + field(3, names.encode())
    query = native.whole(1, begin_ms) + native.whole(2, end_ms) + field(3, matcher)
    request = urllib.request.Request(base + "/api/v1/read", data=remote_write.snappy(field(1, query)), headers={
        "Content-Encoding": "snappy", "Content-Type": "application/x-protobuf",
        "X-Prometheus-Remote-Read-Version": "0.1.0"})
    with urllib.request.urlopen(request, timeout=60) as response:
        answer = unsnappy(response.read())
    results = [value for number, value in fields(answer) if number == 1]
    return [series(value) for result in results for number, value in fields(result) if number == 1]
