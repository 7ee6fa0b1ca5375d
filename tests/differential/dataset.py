"""dataset - random series that PromQL has to cope with, as OpenMetrics text.

Counters with resets, gauges, classic and native histograms, sparse and dense series, gaps longer than the
lookback, series that appear and end, stale markers, NaN and infinities, equal values, tiny and huge
numbers."""
import math
import random
import re

import native
import remote_write

STEP_S = 15
DURATION_S = 3 * 3600
START_S = 1_700_000_400  # any fixed time; a multiple of neither an hour nor the block length


STALE_TEXT = "StaleNaN"  # as promfabric import reads it


def fmt(value):
    if isinstance(value, native.Histogram):
        return value.text()
    if remote_write.is_stale(value):
        return STALE_TEXT
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


class Series:
    def __init__(self, labels, points):
        self.labels = labels
        self.points = points  # (time in ms, value)

    def marked(self, rng):
        """Stale markers as a scraper leaves them: after some gaps and, for some series, at the end."""
        out = []
        for (t, value), (after, _) in zip(self.points, self.points[1:] + [(None, None)]):
            out.append((t, value))
            gap = after is None or after - t > 4 * STEP_S * 1000
            if gap and rng.random() < 0.5:
                out.append((t + STEP_S * 1000, remote_write.STALE))
        return Series(self.labels, out)


def times(rng, dense=True):
    """Sample times: a scrape grid with jitter, lost scrapes and long gaps."""
    step = STEP_S if dense else rng.choice([60, 120, 290])
    jitter = rng.choice([0, 0, 3, 400])
    begin = START_S + (0 if rng.random() < 0.7 else rng.randrange(DURATION_S // 2))
    end = START_S + DURATION_S - (0 if rng.random() < 0.7 else rng.randrange(DURATION_S // 2))
    t, out = begin * 1000, []
    while t < end * 1000:
        out.append(t + (rng.randrange(jitter) if jitter else 0))
        t += step * 1000
        if rng.random() < 0.01:
            t += step * 1000 * rng.randrange(1, 4)
        if rng.random() < 0.002:
            t += rng.randrange(300, 2000) * 1000
    return out


# Without gaps and stale markers: info() of Prometheus 3.5 mixes up series of which some are missing at a step.
STEADY = ("steady", "target_info")


def steady_times():
    return [t * 1000 for t in range(START_S, START_S + DURATION_S, STEP_S)]


def counter(rng, stamps):
    value, rate = rng.choice([0.0, 0.0, 1e6]), rng.choice([0.1, 1.0, 50.0])
    for t in stamps:
        if rng.random() < 0.004:
            value = rng.choice([0.0, 1.0, value / 2])
        else:
            value += round(rng.expovariate(1 / rate), rng.choice([0, 3]))
        yield t, value


def gauge(rng, stamps):
    value, scale = rng.uniform(-10, 100), rng.choice([0.01, 1.0, 1e9])
    flat = rng.random() < 0.2
    for t in stamps:
        if not flat:
            value += rng.gauss(0, scale)
        yield t, round(value, 4)


def wild(rng, stamps):
    """Everything a double can be, but for denormals: Go's logarithms of those are off on amd64."""
    choices = [0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 3e-308, 0.1]
    for t in stamps:
        yield t, rng.choice(choices) if rng.random() < 0.3 else rng.gauss(0, 10)


def histogram(rng, name, base, stamps):
    """One classic histogram: buckets, sum and count that agree."""
    bounds = [0.005, 0.05, 0.5, 1.0, 2.5, 10.0, math.inf]
    counts, total, out = [0] * len(bounds), 0.0, {b: [] for b in bounds}
    sums, totals = [], []
    for t in stamps:
        for _ in range(rng.randrange(4)):
            v = rng.expovariate(2)
            total += v
            for i, b in enumerate(bounds):
                counts[i] += v <= b
        if rng.random() < 0.003:
            counts, total = [0] * len(bounds), 0.0
        for i, b in enumerate(bounds):
            out[b].append((t, float(counts[i])))
        sums.append((t, total))
        totals.append((t, float(counts[-1])))
    for b in bounds:
        yield Series(dict(base, __name__=name + "_bucket", le=fmt(b) if b != 1.0 else "1"), out[b])
    yield Series(dict(base, __name__=name + "_sum"), sums)
    yield Series(dict(base, __name__=name + "_count"), totals)


def build(seed):
    rng = random.Random(seed)
    series = []
    for job in ("api", "web"):
        for instance in ("0", "1", "2"):
            base = {"job": job, "instance": instance}
            for code in ("200", "500"):
                labels = dict(base, __name__="requests_total", code=code)
                series.append(Series(labels, list(counter(rng, times(rng)))))
            series.append(Series(dict(base, __name__="cpu_seconds_total"), list(counter(rng, times(rng)))))
            series.append(Series(dict(base, __name__="memory_bytes"), list(gauge(rng, times(rng)))))
            series.append(Series(dict(base, __name__="temperature", zone="z" + instance),
                                 list(gauge(rng, times(rng, dense=False)))))
            series.append(Series(dict(base, __name__="wild"), list(wild(rng, times(rng)))))
        for kind in native.KINDS:
            for instance in ("0", "1", "2"):
                labels = {"__name__": kind, "job": job, "instance": instance}
                series.append(Series(labels, list(native.samples(rng, kind, times(rng)))))
        series.extend(histogram(rng, "latency_seconds", {"job": job}, times(rng)))
        series.append(Series({"__name__": "limit", "job": job}, list(gauge(rng, times(rng)))))
        for instance in ("0", "1", "2"):
            labels = {"__name__": "target_info", "job": job, "instance": instance,
                      "version": rng.choice(["1.0", "1.1"])}
            series.append(Series(labels, [(t, 1.0) for t in steady_times()]))
            labels = {"__name__": "steady", "job": job, "instance": instance}
            series.append(Series(labels, list(gauge(rng, steady_times()))))
    return [s if s.labels["__name__"] in STEADY else s.marked(rng) for s in series if s.points]


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def plain(name):
    """@name, in quotes if it is no plain word."""
    return name if re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name) else quoted(name)


def openmetrics(series):
    """All samples as untyped OpenMetrics text, grouped by metric as the format wants it."""
    out = []
    for s in sorted(series, key=lambda s: (s.labels["__name__"], sorted(s.labels.items()))):
        name = s.labels["__name__"]
        labels = [f"{plain(k)}={quoted(v)}" for k, v in sorted(s.labels.items()) if k != "__name__"]
        text = f"{name}{{{','.join(labels)}}}" if plain(name) == name else f"{{{','.join([quoted(name)] + labels)}}}"
        for t, v in s.points:
            out.append(f"{text} {fmt(v)} {t / 1000:.3f}")
    out.append("# EOF")
    return "\n".join(out) + "\n"


def as_stored(series, stored):
    """@series with the native histograms of @stored ((labels, points)...), which has the same samples."""
    found = {tuple(sorted(labels.items())): points for labels, points in stored}
    out = []
    for s in series:
        points = s.points
        if s.labels["__name__"] in native.KINDS:
            points = found[tuple(sorted(s.labels.items()))]
            if [t for t, _ in points] != [t for t, _ in s.points]:
                raise SystemExit(f"{s.labels}: {len(s.points)} samples were sent, {len(points)} are stored")
            for (_, mine), (_, its) in zip(s.points, points):
                if isinstance(its, native.Histogram):
                    its.bounds = mine.bounds  # remote read of 3.5 forgets them
        out.append(Series(s.labels, points))
    return out
