"""heads.py - what a query does to read what is fresh: status, then a read of every range."""
import json
import os
import subprocess
import tempfile

PRINT_SEGMENT = os.environ["PRINT_SEGMENT"]
ALL_TIMES = {"min_ts": -(1 << 58), "max_ts": 1 << 58}


def write(node, text, tenant=None, headers=None, timeout=30):
    """Lines of text with timestamps; the status of the answer."""
    headers = dict(headers or {})
    if tenant:
        headers["X-Scope-OrgID"] = tenant
    return node.raw("POST", "/api/v1/import/prometheus", body=text.encode(), headers=headers,
                    timeout=timeout)[0]


def status(node, tenant="default", headers=None, timeout=30, **more):
    code, answer = node.request("POST", "/v1/heads/status",
                                body=json.dumps({"tenant": tenant, **ALL_TIMES, **more}),
                                headers=headers, timeout=timeout)
    return code, answer


def read(node, partition, generation, tenant="default", cut=None, shard=0, shards=1, match=None,
         headers=None, **more):
    """Status code and what was read: {series: {ts: value}}."""
    ask = {"tenant": tenant, "partition": partition["partition"], "queue": partition["queue"],
           "generation": generation, "cut": partition["applied"] if cut is None else cut,
           "shard": shard, "shards": shards, **ALL_TIMES, **more}
    if match:
        ask["match"] = match
    code, body, answered = node.raw("POST", "/v1/heads/read", body=json.dumps(ask), headers=headers)
    if code != 200:
        return code, json.loads(body) if body else None
    series, generation_read = print_segment(body)
    assert generation_read == generation, (generation_read, generation)
    assert int(answered["X-Promfabric-Samples"]) == sum(len(s) for s in series.values())
    return code, series


def print_segment(content):
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        return print_file(file.name)


def print_file(path):
    lines = subprocess.run([PRINT_SEGMENT, path], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    generation = int(lines[0].split()[1])
    series = {}
    for line in lines[1:]:
        end = line.rindex("}") + 1 if "}" in line else line.index(" ")
        series[line[:end]] = {int(s.split(":")[0]): float(s.split(":")[1]) for s in line[end:].split()}
    return series, generation


def fresh(node, tenant="default", reader=None):
    """Everything of a tenant that is not sealed: later generations win. What is gone is planned again."""
    for _ in range(10):
        code, answer = status(node, tenant)
        assert code == 200, (code, answer)
        found = {}
        code = 200
        for partition in answer["partitions"]:
            for at in sorted(partition["ranges"], key=lambda r: r["generation"]):
                code, series = read(reader or node, partition, at["generation"], tenant)
                assert code in (200, 204, 410), (code, series)
                if code == 410:
                    break
                for name, samples in (series or {}).items():
                    found.setdefault(name, {}).update(samples)
        if code != 410:
            return found
    raise AssertionError("gone again and again")


def stored(folder, tenant="default"):
    """Everything of a tenant in the store; later generations win."""
    files = []
    for base, _, names in os.walk(os.path.join(folder, f"tenant={tenant}")):
        files += [print_file(os.path.join(base, n)) for n in names if n.endswith(".parquet")]
    found = {}
    for series, _ in sorted(files, key=lambda f: f[1]):
        for name, samples in series.items():
            found.setdefault(name, {}).update(samples)
    return found
