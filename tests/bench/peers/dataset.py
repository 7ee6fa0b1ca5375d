"""dataset - the data of the peers benchmark: counters, gauges and classic histograms, deterministic."""
import random

START_S = 1_700_000_000 - 1_700_000_000 % 7200


def series(instances, rng):
    """(name, labels, kind) of every series: 34 an instance."""
    for i in range(instances):
        job = ("api", "web", "db", "cache")[i % 4]
        base = f'job="{job}",instance="host-{i:04d}"'
        yield "up", base, "one"
        yield "node_memory_bytes", base, "gauge"
        for code in ("200", "404", "500"):
            for path in ("/", "/a", "/b", "/c"):
                yield "http_requests_total", f'{base},code="{code}",path="{path}"', "counter"
        for mode in ("user", "system", "idle", "iowait"):
            for cpu in ("0", "1"):
                yield "node_cpu_seconds_total", f'{base},cpu="{cpu}",mode="{mode}"', "counter"
        for le in ("0.005", "0.01", "0.05", "0.1", "0.5", "1", "2.5", "5", "10", "+Inf"):
            yield "http_latency_seconds_bucket", f'{base},le="{le}"', "bucket"
        yield "http_latency_seconds_sum", base, "counter"
        yield "http_latency_seconds_count", base, "counter"


BUCKET_SHARE = {"0.005": 1, "0.01": 2, "0.05": 5, "0.1": 9, "0.5": 14, "1": 18, "2.5": 19, "5": 20,
                "10": 21, "+Inf": 22}


def write(out, instances, hours, step_s, seed=1):
    """OpenMetrics text to the file object @out; returns (series, samples)."""
    rng = random.Random(seed)
    stamps = range(START_S, START_S + hours * 3600, step_s)
    every = sorted(series(instances, rng), key=lambda s: (s[0], s[1]))
    for name, labels, kind in every:
        value = rng.uniform(0, 1e5) if kind == "counter" else 4e8 + rng.uniform(0, 2e8)
        share = 1
        if kind == "bucket":
            value, share = 0.0, BUCKET_SHARE[labels.rsplit('le="', 1)[1][:-1]]
        rate = rng.uniform(0.2, 50)
        lines = []
        for t in stamps:
            if kind == "one":
                value = 1
            elif kind == "gauge":
                value = max(0.0, value + rng.gauss(0, 1e6))
            elif kind == "bucket":
                value += share * (t // step_s % 3 + 1)
            else:
                value = 0.0 if rng.random() < 0.0002 else value + rng.uniform(0, 2) * rate
            lines.append(f"{name}{{{labels}}} {value:.10g} {t}\n")
        out.write("".join(lines))
    out.write("# EOF\n")
    return len(every), len(every) * len(stamps)
