"""generate - random, typed PromQL expressions, as trees that can be shrunk."""
import random

COUNTERS = ["requests_total", "cpu_seconds_total"]
GAUGES = ["memory_bytes", "temperature", "wild", "limit", "steady"]
NATIVE = ["native_requests", "native_requests", "native_float", "native_gauge", "native_custom", "native_mixed",
          "native_odd"]
LABELS = ["job", "instance", "code", "zone"]
VECTOR, MATRIX, SCALAR = "vector", "matrix", "scalar"


class Node:
    """A piece of an expression: a template with a hole for each child."""

    def __init__(self, kind, template, children=()):
        self.kind, self.template, self.children = kind, template, list(children)

    def text(self):
        return self.template.format(*[c.text() for c in self.children])

    def size(self):
        return 1 + sum(c.size() for c in self.children)

    def shrunk(self):
        """Every expression of the same kind that is one step smaller."""
        for child in self.descendants():
            if child.kind == self.kind:
                yield child
        for i, child in enumerate(self.children):
            for smaller in child.shrunk():
                yield Node(self.kind, self.template,
                           self.children[:i] + [smaller] + self.children[i + 1:])
            if child.kind == SCALAR and child.text() != "1":
                yield Node(self.kind, self.template,
                           self.children[:i] + [Node(SCALAR, "1")] + self.children[i + 1:])

    def descendants(self):
        for child in self.children:
            yield child
            yield from child.descendants()


RANGE_FUNCTIONS = ["rate", "increase", "delta", "irate", "idelta", "resets", "changes", "deriv",
                   "avg_over_time", "sum_over_time", "min_over_time", "max_over_time",
                   "count_over_time", "stddev_over_time", "stdvar_over_time", "last_over_time",
                   "present_over_time", "absent_over_time", "mad_over_time", "ts_of_min_over_time",
                   "ts_of_max_over_time", "ts_of_last_over_time"]
MATH = ["abs", "ceil", "floor", "exp", "ln", "log2", "log10", "sqrt", "sgn", "round", "sin", "cos",
        "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "deg", "rad"]
DATES = ["minute", "hour", "day_of_week", "day_of_month", "day_of_year", "days_in_month", "month",
         "year", "timestamp"]
AGGREGATORS = ["sum", "avg", "count", "min", "max", "group", "stddev", "stdvar"]
ARITHMETIC = ["+", "-", "*", "/", "%", "^", "atan2"]
COMPARISON = ["==", "!=", "<", ">", "<=", ">="]
SETS = ["and", "or", "unless"]
# Of native histograms: on floats they answer nothing, and must say so alike.
HISTOGRAM_ONLY = ["histogram_avg", "histogram_count", "histogram_sum", "histogram_stddev", "histogram_stdvar"]
SORTS = ["sort({})", "sort_desc({})", 'sort_by_label({}, "instance", "job")',
         'sort_by_label_desc({}, "zone", "code")', "sort_by_label({})"]
RENAMES = ['label_replace({}, "zone", "$1-x", "instance", "(.*)")',
           'label_replace({}, "zone", "", "zone", ".*")',
           'label_replace({}, "tier", "${{n}}", "job", "(?P<n>a.|w.)(.*)")',
           'label_replace({}, "job", "same", "instance", "0|1")',
           'label_replace({}, "__name__", "renamed_$1", "job", "(.+)")',
           'label_join({}, "zone", "-", "job", "instance")',
           'label_join({}, "all", "", "code", "zone", "missing")']
# Known to the engine but not to Prometheus 3.5, so there is nothing to compare with.
NOT_IN_PEER = ["first_over_time", "ts_of_first_over_time", "histogram_quantiles", "start", "end", "step",
               "range", "min_of", "max_of", "start_timestamp"]


class Generator:
    def __init__(self, seed, start_s, duration_s):
        self.rng = random.Random(seed)
        self.start, self.duration = start_s, duration_s
        self.native = 0.7 if self.rng.random() < 0.5 else 0  # how many of the metrics are native histograms

    def name(self, floats):
        """A metric: one of @floats, or native histograms in whatever place."""
        return self.rng.choice(NATIVE if self.rng.random() < self.native else floats)

    def matchers(self):
        rng = self.rng
        out = []
        for label in LABELS:
            if rng.random() < 0.15:
                value = rng.choice({"job": ["api", "web", "x"], "instance": ["0", "1", ""],
                                    "code": ["200", "500", ""], "zone": ["z0", ".+", ""]}[label])
                out.append(f'{label}{rng.choice(["=", "!=", "=~", "!~"])}"{value}"')
        return "{" + ",".join(out) + "}" if out else ""

    def shift(self):
        rng = self.rng
        out = ""
        if rng.random() < 0.12:
            out += " offset " + rng.choice(["1m", "7m30s", "1h", "-5m", "13s"])
        if rng.random() < 0.08:
            at = rng.choice(["start()", "end()", str(self.start + rng.randrange(self.duration))])
            out += " @ " + at
        return out

    def selector(self, names=None):
        return Node(VECTOR, self.escape(self.name(names or COUNTERS + GAUGES) + self.matchers() + self.shift()))

    @staticmethod
    def escape(text):
        return text.replace("{", "{{").replace("}", "}}")

    def range(self):
        return self.rng.choice(["30s", "1m", "2m", "5m", "5m", "10m", "17m", "1h"])

    def matrix(self, depth, names=None):
        rng = self.rng
        if depth > 1 and rng.random() < 0.2:
            step = rng.choice(["", "30s", "1m", "2m", "37s"])
            inner = self.vector(depth - 2)
            return Node(MATRIX, "({})[" + f"{self.range()}:{step}]" + self.shift(), [inner])
        name = self.name(names or COUNTERS + GAUGES)
        return Node(MATRIX, self.escape(f"{name}{self.matchers()}[{self.range()}]{self.shift()}"))

    def scalar(self, depth):
        rng = self.rng
        kind = rng.random()
        if depth <= 0 or kind < 0.6:
            return Node(SCALAR, rng.choice(["0", "1", "2", "-1", "0.5", "100", "1e9", "NaN", "Inf",
                                            "time()", "pi()"]))
        if kind < 0.75:
            return Node(SCALAR, "scalar({})", [self.vector(depth - 1)])
        op = rng.choice(ARITHMETIC)
        return Node(SCALAR, "({} " + op + " {})", [self.scalar(depth - 1), self.scalar(depth - 1)])

    def grouping(self):
        rng = self.rng
        if rng.random() < 0.25:
            return ""
        labels = ", ".join(rng.sample(LABELS + ["le"], rng.randrange(0, 3)))
        return f" {rng.choice(['by', 'without'])} ({labels})"

    def aggregate(self, depth):
        rng = self.rng
        inner = self.vector(depth - 1)
        kind = rng.random()
        if kind < 0.7:
            return Node(VECTOR, rng.choice(AGGREGATORS) + self.grouping() + " ({})", [inner])
        if kind < 0.82:
            op, k = rng.choice(["topk", "bottomk"]), rng.choice(["1", "2", "3", "0"])
            return Node(VECTOR, f"{op}{self.grouping()} ({k}, " + "{})", [inner])
        if kind < 0.85:
            op = rng.choice(["limitk", "limit_ratio"])
            k = rng.choice(["1", "2", "5"] if op == "limitk" else ["0.3", "-0.3", "1", "0", "0.5"])
            return Node(VECTOR, f"{op}{self.grouping()} ({k}, " + "{})", [inner])
        if kind < 0.95:
            q = rng.choice(["0", "0.5", "0.9", "1", "-1", "2", "NaN"])
            return Node(VECTOR, f"quantile{self.grouping()} ({q}, " + "{})", [inner])
        return Node(VECTOR, f'count_values{self.grouping()} ("v", ' + "{})", [inner])

    def of_native(self, depth):
        """A function that looks into native histograms."""
        rng, inner = self.rng, self.vector(depth - 1)
        kind = rng.random()
        if kind < 0.5:
            return Node(VECTOR, rng.choice(HISTOGRAM_ONLY) + "({})", [inner])
        if kind < 0.75:
            q = rng.choice(["0.5", "0.9", "0.99", "0", "1", "-1", "2", "NaN"])
            return Node(VECTOR, f"histogram_quantile({q}, " + "{})", [inner])
        low, high = rng.choice(["0", "-1", "-Inf", "0.0005", "0.3"]), rng.choice(["1", "0.3", "+Inf", "0", "NaN"])
        return Node(VECTOR, f"histogram_fraction({low}, {high}, " + "{})", [inner])

    def call(self, depth):
        rng = self.rng
        if rng.random() < self.native * 0.4:
            return self.of_native(depth)
        kind = rng.random()
        if kind < 0.45:
            fn = rng.choice(RANGE_FUNCTIONS)
            names = COUNTERS if fn in ("rate", "increase", "irate") and rng.random() < 0.8 else None
            return Node(VECTOR, fn + "({})", [self.matrix(depth, names)])
        if kind < 0.50:
            q = rng.choice(["0", "0.3", "0.5", "0.99", "1", "-1", "1.5"])
            return Node(VECTOR, f"quantile_over_time({q}, " + "{})", [self.matrix(depth)])
        if kind < 0.55:
            return Node(VECTOR, "predict_linear({}, {})", [self.matrix(depth), self.scalar(depth - 1)])
        if kind < 0.70:
            return Node(VECTOR, rng.choice(MATH) + "({})", [self.vector(depth - 1)])
        if kind < 0.75:
            return Node(VECTOR, rng.choice(DATES) + "({})", [self.vector(depth - 1)])
        if kind < 0.80:
            return Node(VECTOR, "clamp({}, {}, {})",
                        [self.vector(depth - 1), self.scalar(0), self.scalar(0)])
        if kind < 0.83:
            return Node(VECTOR, rng.choice(["clamp_min", "clamp_max", "round"]) + "({}, {})",
                        [self.vector(depth - 1), self.scalar(0)])
        if kind < 0.86:
            return Node(VECTOR, "vector({})", [self.scalar(depth - 1)])
        if kind < 0.89:
            return Node(VECTOR, "absent({})", [self.selector()])
        if kind < 0.91:
            return Node(VECTOR, rng.choice(RENAMES), [self.vector(depth - 1)])
        if kind < 0.92:
            return Node(VECTOR, rng.choice(SORTS), [self.vector(depth - 1)])
        if kind < 0.93:
            return Node(VECTOR, rng.choice(HISTOGRAM_ONLY) + "({})", [self.vector(depth - 1)])
        if kind < 0.94:
            which = rng.choice(["", ', {{version="1.0"}}', ', {{version=~".+"}}', ', {{build_id="x"}}'])
            # No shift: after 3.5 info series are read at the argument's own offset and @.
            base = Node(VECTOR, self.escape("steady" + self.matchers()))
            return Node(VECTOR, "info({}" + which + ")", [base])
        if kind < 0.95:
            factors = rng.choice(["0.5, 0.5", "0.1, 0.9", "0.99, 0.01"])
            return Node(VECTOR, "double_exponential_smoothing({}, " + factors + ")", [self.matrix(depth)])
        q = rng.choice(["0.5", "0.9", "0.99", "0", "1"])
        inner = rng.choice(["rate(latency_seconds_bucket[5m])", "latency_seconds_bucket",
                            "sum by (le) (rate(latency_seconds_bucket[10m]))",
                            "increase(latency_seconds_bucket[20m] offset 3m)"])
        if rng.random() < 0.3:
            return Node(VECTOR, f"histogram_fraction(0, {rng.choice(['0.5', '2', '0.05'])}, {inner})")
        return Node(VECTOR, f"histogram_quantile({q}, {inner})")

    def binary(self, depth):
        rng = self.rng
        kind = rng.random()
        if kind < 0.35:
            op = rng.choice(ARITHMETIC + COMPARISON)
            op += " bool" if op in COMPARISON and rng.random() < 0.4 else ""
            sides = [self.vector(depth - 1), self.scalar(depth - 1)]
            rng.shuffle(sides)
            return Node(VECTOR, "({} " + op + " {})", sides)
        left, right = self.vector(depth - 1), self.vector(depth - 1)
        if kind < 0.5:
            match = rng.choice(["", " on (job)", " ignoring (code, zone)", " on ()"])
            return Node(VECTOR, "({} " + rng.choice(SETS) + match + " {})", [left, right])
        op = rng.choice(ARITHMETIC + COMPARISON)
        op += " bool" if op in COMPARISON and rng.random() < 0.4 else ""
        if kind < 0.7:
            match = rng.choice(["", " on (job, instance)", " ignoring (code)", " ignoring (code, zone)"])
            if rng.random() < 0.3:
                match = " on (job, instance) " + rng.choice(
                    ["group_left ()", "group_right ()", "group_left (zone)", "group_right (code)"])
            return Node(VECTOR, "({} " + op + match + " {})", [left, right])
        group = Node(VECTOR, "sum by (job) ({})", [right])
        match = rng.choice([" on (job) group_left ()", " on (job) group_left (zone)"])
        return Node(VECTOR, "({} " + op + match + " {})", [left, group])

    def vector(self, depth):
        rng = self.rng
        if depth <= 0:
            return self.selector()
        kind = rng.random()
        if kind < 0.12:
            return self.selector()
        if kind < 0.40:
            return self.aggregate(depth)
        if kind < 0.72:
            return self.call(depth)
        if kind < 0.95:
            return self.binary(depth)
        return Node(VECTOR, "-{}", [self.vector(depth - 1)])

    def expression(self):
        depth = self.rng.choice([1, 2, 2, 3, 3, 4])
        kind = self.rng.random()
        if kind < 0.04:
            return self.scalar(depth)
        if kind < 0.05:
            return Node(MATRIX, "{}", [self.matrix(depth)])  # an answer of instant queries only
        if kind < 0.06:
            return Node(SCALAR, '"a string"')
        if kind < 0.10:
            return Node(VECTOR, self.rng.choice(SORTS), [self.vector(depth - 1)])
        if kind < 0.11:
            return Node(VECTOR, self.rng.choice(DATES[:-1]) + "()")
        return self.vector(depth)
