"""native - native histograms: how they count, as text, as a message, and random series of them.

Integer and float counters, gauges, custom bounds; resets, changes of schema, of zero bucket, of bounds
and of kind, gaps and stale markers. Prometheus keeps with each histogram whether its counter was reset;
remote_read.py reads that back, so that both servers hold the same."""
import math
import struct

import remote_write

CUSTOM_SCHEMA = -53
UNKNOWN, RESET, NOT_RESET, GAUGE = range(4)
HINTS = ("unknown", "reset", "not_reset", "gauge")


def spans(buckets):
    """([(offset, length)...], [count...]) of {index: count}."""
    out, counts, after = [], [], None
    for index in sorted(buckets):
        if after is not None and index == after:
            out[-1][1] += 1
        else:
            out.append([index - (after or 0), 1])
        after = index + 1
        counts.append(buckets[index])
    return out, counts


class Histogram:
    """@positive and @negative are {bucket index: absolute count}."""

    def __init__(self, schema=0, zero_threshold=0.0, bounds=(), integer=True, hint=UNKNOWN):
        self.schema, self.zero_threshold, self.bounds = schema, zero_threshold, tuple(bounds)
        self.integer, self.hint = integer, hint
        self.zero_count, self.sum, self.extra = 0, 0.0, 0
        self.positive, self.negative = {}, {}

    def copy(self):
        out = Histogram(self.schema, self.zero_threshold, self.bounds, self.integer, self.hint)
        out.zero_count, out.sum, out.extra = self.zero_count, self.sum, self.extra
        out.positive, out.negative = dict(self.positive), dict(self.negative)
        return out

    @property
    def count(self):
        """All buckets, and the observations of NaN, which are in none."""
        return self.zero_count + sum(self.positive.values()) + sum(self.negative.values()) + self.extra

    def observe(self, value, weight=1):
        self.sum += value * weight
        if self.schema == CUSTOM_SCHEMA:
            side, index = self.positive, sum(b < value for b in self.bounds)
        elif abs(value) <= self.zero_threshold:
            self.zero_count += weight
            return
        else:
            side = self.positive if value > 0 else self.negative
            index = math.ceil(math.log2(abs(value)) * 2.0 ** self.schema)
        side[index] = side.get(index, 0) + weight

    def coarsened(self, steps):
        """The same in a schema that is coarser by @steps."""
        out = self.copy()
        out.schema -= steps
        out.positive, out.negative = {}, {}
        for mine, its in ((self.positive, out.positive), (self.negative, out.negative)):
            for index, count in mine.items():
                index = ((index - 1) >> steps) + 1
                its[index] = its.get(index, 0) + count
        return out

    def widened(self, threshold, absorb):
        """The same with a wider zero bucket; unless it is to @absorb them, buckets inside of it stay."""
        out = self.copy()
        out.zero_threshold = threshold
        for side in (out.positive, out.negative):
            for index in [i for i in side if absorb and 2.0 ** (i * 2.0 ** -out.schema) <= threshold]:
                out.zero_count += side.pop(index)
        return out

    def text(self):
        """As promfabric import reads it."""
        parts = [f"count:{self.count!r}", f"sum:{number(self.sum)}", f"schema:{self.schema}"]
        if self.schema == CUSTOM_SCHEMA:
            parts.append("custom_values:[" + ",".join(number(b) for b in self.bounds) + "]")
        else:
            parts += [f"zero_threshold:{self.zero_threshold!r}", f"zero_count:{self.zero_count!r}"]
        for name, side in (("negative", self.negative), ("positive", self.positive)):
            if side:
                where, counts = spans(side)
                parts.append(f"{name}_spans:[" + ",".join(f"{o}:{n}" for o, n in where) + "]")
                parts.append(f"{name}_buckets:[" + ",".join(map(repr, counts)) + "]")
        return "{" + ",".join(parts + [f"counter_reset_hint:{HINTS[self.hint]}"]) + "}"

    def message(self, t):
        """A prometheus.Histogram of remote write 1.0."""
        count = self.count
        out = whole(1, count) if self.integer else real(2, count)
        out += real(3, self.sum) + whole(4, zigzag(self.schema)) + real(5, self.zero_threshold)
        out += whole(6, self.zero_count) if self.integer else real(7, self.zero_count)
        for base, side in ((8, self.negative), (11, self.positive)):
            where, counts = spans(side)
            for offset, length in where:
                out += remote_write.field(base, whole(1, zigzag(offset)) + whole(2, length))
            if self.integer:
                deltas = [a - b for a, b in zip(counts, [0] + counts)]
                out += remote_write.field(base + 1, b"".join(remote_write.varint(zigzag(d)) for d in deltas))
            else:
                out += remote_write.field(base + 2, struct.pack(f"<{len(counts)}d", *counts))
        if self.bounds:
            out += remote_write.field(16, struct.pack(f"<{len(self.bounds)}d", *self.bounds))
        return out + whole(14, self.hint) + whole(15, t)


def number(value):
    if math.isnan(value):
        return "NaN"
    return repr(value).replace("inf", "Inf")


def zigzag(n):
    return n << 1 if n >= 0 else (-n << 1) - 1


def whole(field, n):
    return remote_write.varint(field << 3) + remote_write.varint(n)


def real(field, value):
    return remote_write.varint(field << 3 | 1) + struct.pack("<d", value)


def fresh(rng, kind):
    """An empty histogram of one of the kinds below. Zero buckets end where buckets of every schema do."""
    integer = kind in ("native_requests", "native_mixed", "native_odd") or (kind != "native_float" and rng.random() < 0.5)
    if kind == "native_custom":
        return Histogram(CUSTOM_SCHEMA, bounds=rng.choice([(0.1, 0.5, 1.0, 5.0)] * 4 + [
            (0.1, 1.0, 5.0), (0.5, 1.0, 2.5, 10.0), (-1.0, 0.0, 1.0)]), integer=integer)
    thresholds = [0.001, 0.0, 0.01] if kind == "native_odd" else [2.0 ** -12] * 6 + [0.0, 2.0 ** -128, 2.0 ** -8]
    return Histogram(rng.choice([0, 0, 1, 2, 3, -1]), rng.choice(thresholds), integer=integer,
                     hint=GAUGE if kind == "native_gauge" else UNKNOWN)


def weight(h):
    return 5 if h.integer else 4.75


def begun(rng, h, before=math.inf):
    """@h with some history, of at most 3/5 of the count @before a reset. 3.5 extrapolates rates of histograms to
    below zero, later ones stop there: no window may see more increase than what its first sample counts makes
    up for."""
    for _ in range(max(1, int(min(40, before * 0.6 / weight(h))))):
        h.observe(round(rng.lognormvariate(-1, 1), 4), weight(h))
    return h


def stirred(rng, h):
    """What becomes of a gauge: less of everything if there is much, else more."""
    if h.count >= 260:
        return begun(rng, Histogram(h.schema, h.zero_threshold, h.bounds, h.integer, h.hint), h.count)
    for _ in range(rng.randrange(int(h.count * 0.7 / weight(h)))):
        h.observe(round(rng.lognormvariate(-1, 1), 4), weight(h))
    return h


def observe_some(rng, h, signed):
    for _ in range(rng.choice([0, 0, 1, 3])):
        value = rng.lognormvariate(-1, rng.choice([0.5, 1.5]))
        if rng.random() < 0.05:
            value = 0.0
        if signed and rng.random() < 0.3:
            value = -value
        h.observe(round(value, 4), 1 if h.integer else rng.choice([1.0, 0.5, 2.25]))


def observe_nan(h):
    """In no bucket, and nothing is known of the sum any more."""
    h.sum = math.nan
    h.extra += 1


def changed(rng, h, kind):
    """What happens to a counter once in a while; most of it is a reset."""
    what = rng.random()
    if what < 0.35:
        return begun(rng, Histogram(h.schema, h.zero_threshold, h.bounds, h.integer, h.hint), h.count)
    if what < 0.55 and h.schema not in (CUSTOM_SCHEMA, -2):
        return h.coarsened(1)
    if what < 0.65 and h.schema != CUSTOM_SCHEMA:
        return h.widened(max(0.001, h.zero_threshold * 4), False) if kind == "native_odd" else h.widened(2.0 ** -4, True)
    if what < 0.72 and kind == "native_mixed":
        return begun(rng, fresh(rng, rng.choice(["native_custom", "native_requests"])), h.count)
    return begun(rng, fresh(rng, kind), h.count)


def samples(rng, kind, stamps):
    """(time, Histogram, or a float in native_mixed) of one series."""
    h, signed = begun(rng, fresh(rng, kind)), rng.random() < 0.4
    floats, total = kind == "native_mixed" and rng.random() < 0.5, 0.0
    for t in stamps:
        if rng.random() < 0.008 and h.count >= 150:
            h = changed(rng, h, kind)
        elif kind == "native_gauge" and rng.random() < 0.3:
            h = stirred(rng, h)
        if kind == "native_mixed" and rng.random() < 0.02:
            floats = not floats
        observe_some(rng, h, signed and h.schema != CUSTOM_SCHEMA)
        if rng.random() < 0.0005:
            observe_nan(h)
        total += rng.randrange(3)
        yield t, total if floats else h.copy()


# native_odd has buckets inside its zero bucket, which no client makes and nothing forbids.
KINDS = ("native_requests", "native_float", "native_gauge", "native_custom", "native_mixed", "native_odd")
