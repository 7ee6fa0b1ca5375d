"""known - differences to Prometheus 3.5 that are not ours to mend, each with its reason."""
import json
import re

import compare

# A difference that is not ours to mend: (name, why, when(query, ours, theirs, difference)).
RULES = [
    ("large-sorts", "in which order equal values stand among more than 12 is a matter of Prometheus's sort",
     lambda q, ours, theirs, d: re.search(r"\b(topk|bottomk|sort|sort_desc)\b", q) and "in another order" in d and
     same_values(ours, theirs) and len(ours[1]["result"]) > 12),
    ("table-order", "what operators and functions of one value give to a range query or subquery stands in the order of a table of Go, by which ties are broken above them",
     lambda q, ours, theirs, d: (re.search(r"\b(topk|bottomk|limitk)\b", q) or "in another order" in d) and
     BY_STEP.search(bare(q)) and evaluated(ours, theirs) and
     (matrices(ours, theirs) or re.search(r"\[[^\]]*:", q))),
    ("mad-nan", "after 3.5 a NaN in the window makes mad_over_time NaN",
     lambda q, ours, theirs, d: "mad_over_time" in q and ("wild" in q or ": NaN, theirs" in d) and
     evaluated(ours, theirs)),
    ("duplicates-named", "after 3.5 the two series that an error names as being in the way stand in the order of their labels",
     lambda q, ours, theirs, d: ours[0] == theirs[0] == "error" and
     all("found duplicate series for the match group" in str(a[1]) for a in (ours, theirs)) and
     in_the_way(ours) == in_the_way(theirs)),
    ("error-order", "of the errors of several operators Prometheus tells that of the one it evaluates first, we the first in a block of steps; series of operators below stand in the order of a table of Go",
     lambda q, ours, theirs, d: ours[0] == theirs[0] == "error" and
     all("matching labels must be unique" in str(a[1]) or "multiple matches for labels" in str(a[1])
         for a in (ours, theirs)) and
     (len(BY_STEP.findall(bare(q))) > 1 or "multiple matches" in str(ours[1]) + str(theirs[1]))),
    ("dropped-match", "since 3.6 a one-to-one match counts even if a comparison drops its result or there is none",
     lambda q, ours, theirs, d: ours[0] == "error" and "multiple matches for labels" in str(ours[1]) and
     theirs[0] == "ok" and (has_note(theirs, OPERATOR_NOTE) or
                            re.search(r"[<>=!]=|[<>]", re.sub(r"\{[^}]*\}", "", q)))),
    ("sort-note", "after 3.5 the sort functions warn that range queries are ordered by labels anyway",
     lambda q, ours, theirs, d: d.startswith("notes") and notes_but(ours, theirs, SORT_NOTE)),
    ("reset-note", "after 3.5 adding a histogram that was reset to one that was not is warned of",
     lambda q, ours, theirs, d: d.startswith("notes") and notes_but(ours, theirs, RESET_NOTE)),
    ("nan-note", "3.5 tells of NaN observations without the metric's name, and points to another argument",
     lambda q, ours, theirs, d: d.startswith("notes") and notes_but(ours, theirs, NAN_NOTE)),
    ("operator-notes", "of the samples that an operator has no result for Prometheus notes the last one in a step, we note each kind",
     lambda q, ours, theirs, d: d.startswith("notes") and notes_but(ours, theirs, OPERATOR_NOTE) and
     set(theirs[1]["notes"]) <= set(ours[1]["notes"])),
    ("mixed-notes", "of several reasons to have no result Prometheus warns of what it meets first, we of floats first",
     lambda q, ours, theirs, d: d.startswith("notes") and notes_but(ours, theirs, MIXED_NOTE) and
     has_note(ours, MIXED_NOTE) and has_note(theirs, MIXED_NOTE)),
    ("note-place", "of a note that several places give one is kept, which hangs on who is evaluated last",
     lambda q, ours, theirs, d: d.startswith("notes") and texts(ours) == texts(theirs) and
     q.count("quantile") > 1 and notes_but(ours, theirs, "quantile value")),
    ("unnamed-note", "3.5 ends a note on series without a metric's name with an empty name, later ones with none",
     lambda q, ours, theirs, d: d.startswith("notes") and ours[1]["notes"] ==
     [n.replace(' for metric name ""', "") for n in theirs[1]["notes"]]),
    ("several-notes", "several of the notes above at once",
     lambda q, ours, theirs, d: d.startswith("notes") and
     notes_but(ours, theirs, "|".join([SORT_NOTE, RESET_NOTE, NAN_NOTE, MIXED_NOTE, OPERATOR_NOTE]))),
    ("custom-bounds", "3.5 does not add histograms of different custom bounds, later ones add what their common bounds tell",
     lambda q, ours, theirs, d: evaluated(ours, theirs) and re.search("native_(custom|mixed)", q) and
     (has_note(theirs, "incompatible custom buckets") or has_note(ours, "custom buckets were reconciled"))),
    ("nan-quantile", "with observations of NaN 3.5 looks for every quantile in the last bucket",
     lambda q, ours, theirs, d: has_note(ours, NAN_NOTE) and "histogram_quantile" in q),
    ("negated", "Prometheus keeps the empty buckets that storage listed when it negates, as their product with NaN shows",
     lambda q, ours, theirs, d: re.search(r"-(native_|[a-z_]*\()", q) and re.search("buckets?|quantile", d + q) and
     evaluated(ours, theirs)),
    ("listed-buckets", "Prometheus keeps the empty buckets that storage listed, and times or divided by NaN they show",
     lambda q, ours, theirs, d: re.search(r" [*/] ", q) and evaluated(ours, theirs) and
     re.search(r"histogram with bucket \[[^]]*'NaN'\], theirs \[[^]]*'NaN'\]", d)),
    ("negated-hint", "after 3.5 a histogram that is negated or a difference is a gauge",
     lambda q, ours, theirs, d: re.search(r"-[a-z_]|-1|native_\w+ - ", q) and d.startswith("notes") and
     any(notes_but(ours, theirs, f"is not a {kind}") for kind in ("gauge", "counter"))),
    ("same-in-time", "3.5 refuses to negate or rename series into the same one also if they are never there at the same time, later ones join them",
     lambda q, ours, theirs, d: re.search(r"-[a-z_]*\(|label_(replace|join)", q) and ours[0] == "ok" and
     "vector cannot contain metrics with the same labelset" in str(theirs[1])),
    ("cancelled-bucket", "a bucket that a subtraction leaves a last bit in is none where it leaves nothing",
     lambda q, ours, theirs, d: re.search(r"histogram with bucket", d) and
     any(abs(float(c)) < 1e-14 for c in re.findall(r"'([-0-9.e]+)'\]", d))),
    ("inner-buckets", "of a bucket inside of its own histogram's zero bucket Prometheus's sums keep or lose the count, by their order",
     lambda q, ours, theirs, d: "native_odd" in q and evaluated(ours, theirs) and
     re.search(r"\b(sum|avg|i?rate|increase|i?delta|sum_over_time|avg_over_time)\b| [-+] ", q)),
    ("sort-missing", "to sort_by_label a missing label is neither less nor greater: such series stay where they were",
     lambda q, ours, theirs, d: "sort_by_label" in q and "in another order" in d),
    ("classic-fraction", "3.5 answers NaN where histogram_fraction meets classic buckets",
     lambda q, ours, theirs, d: "histogram_fraction" in q and evaluated(ours, theirs)),
    ("cancelled", "what is left when almost equal numbers are subtracted has their last bit, and depends on their order",
     lambda q, ours, theirs, d: value_differs(d) and (last_bit_of(1, d) or (
         re.search(r"\bstd(dev|var)\b", q) and (
             last_bit_of(VARIANCE, d) or re.search(r"\b(ts_of_|time|1e9|memory_bytes)", q))))),
    ("amplified", "a last bit of a deviation or an average, magnified: sin or hour of a large number, acosh near 1",
     lambda q, ours, theirs, d: re.search(r"\b(a?(sin|cos|tan)h?|ln|log2|log10|minute|hour|days?_[a-z_]+|month)\(|[%^]", q) and
     re.search(r"\b(sum|avg|stddev|stdvar|quantile|deriv|predict_linear)", q) and value_differs(d)),
    ("amplified-power", "a last bit of a power or an exponential, magnified: sin, cos and tan of a huge number or at a zero, remainders, and what they choose",
     lambda q, ours, theirs, d: re.search(r"\b(sin|cos|tan)\(|%", q) and re.search(r"\^|atan2|\b(exp|sinh|cosh|atan)\(", q) and
     (value_differs(d) or " points, theirs " in d)),
    ("overflow-order", "sums near the largest double overflow or not depending on the order of series",
     lambda q, ours, theirs, d: "wild" in q and re.search(r"\b(sum|avg|stddev|stdvar)\b", q) and
     value_differs(d) and "Inf" in d),
    ("libm", "the last bit of a transcendental function becomes a label of count_values",
     lambda q, ours, theirs, d: "count_values" in q and evaluated(ours, theirs) and re.search(
         r"\^|atan2|exp|ln|log|sin|cos|tan|sqrt|deg|rad|std(dev|var)|avg|deriv|predict|quantile", q)),
    ("compensated", "after 3.5 histograms are added up with compensation, and the last bit of their sum becomes a label of count_values",
     lambda q, ours, theirs, d: "count_values" in q and "sum" in q and "native" in q and evaluated(ours, theirs)),
]


# Operators between vectors, and functions that are neither of a range nor of labels.
BY_STEP = re.compile(r" (and|or|unless|atan2|bool|on|ignoring|[-+*/%^<>]|[<>=!]=) |-[a-z(]|\b(abs|ceil|floor|exp|ln|log2|log10|"
                     r"sqrt|sgn|round|a?(sin|cos|tan)h?|deg|rad|clamp(_min|_max)?|timestamp|minute|hour|month|year|day[a-z_]*|"
                     r"histogram_[a-z]+|sort[a-z_]*|info|vector|absent)\(|count_values")


def bare(query):
    """The query without what stands in brackets, braces and quotes."""
    return re.sub(r"\{[^}]*\}|\[[^\]]*\]|\"[^\"]*\"", "", query)


def matrices(ours, theirs):
    return all(a[0] == "ok" and a[1]["resultType"] == "matrix" for a in (ours, theirs))


def evaluated(ours, theirs):
    """Both answered, or failed at matching, which hangs on the series at hand; no other error is excused."""
    return all(a[0] == "ok" or re.search("match group|matching labels|multiple matches|same labelset", str(a[1]))
               for a in (ours, theirs))


# Of the counters of requests, about: Prometheus adds up a variance in doubles, we in twice their precision.
VARIANCE = 2000

SORT_NOTE = "is ineffective for range queries"
RESET_NOTE = "conflicting counter resets"
NAN_NOTE = "has NaN observations"
MIXED_NOTE = "a mix of histograms"
OPERATOR_NOTE = "for binary operator"


def has_note(answer, text):
    return answer[0] == "ok" and any(text in n for n in answer[1]["notes"])


def in_the_way(answer):
    """What an error says but for the order of the two series that it names."""
    before, _, rest = answer[1][1].partition("operation: [")
    pair, _, after = rest.partition("];")
    return before, sorted(re.findall(r"\{[^}]*\}", pair)), after


def texts(answer):
    """The notes without the places they point to."""
    return [re.sub(r" \(\d+:\d+\)$", "", n) for n in answer[1]["notes"]]


def notes_but(ours, theirs, pattern):
    """The notes of both are the same, but for those that @pattern finds."""
    return [n for n in ours[1]["notes"] if not re.search(pattern, n)] == \
        [n for n in theirs[1]["notes"] if not re.search(pattern, n)]


def value_differs(difference):
    """Same series at the same times; only a value is another."""
    return re.search(r" at [0-9.]+: (histogram with [a-z]+ )?[^ ]+, theirs ", difference)


def last_bit_of(size, difference):
    """The two values differ by no more than a few roundings of numbers around @size."""
    ours, theirs = re.search(r" at [0-9.]+: (?:.* )?([^ ]+), theirs (.*)$", difference).groups()
    return abs(compare.number(ours) - compare.number(theirs)) <= size * 1e-15


def same_but_for_order(ours, theirs):
    """The same series with the same values and notes: asked as if the order were no part of an instant answer."""
    return not matrices(ours, theirs) and compare.difference("count_values", ours, theirs, 1e-9) is None


def values_by_time(answer):
    return sorted((t, json.dumps(v) if isinstance(v, dict) else format(compare.number(v), ".9g"))
                  for ps in compare.points(answer[1]).values() for t, v in ps)


def same_values(ours, theirs):
    """Both answers hold the same values per step."""
    return ours[0] == theirs[0] == "ok" and values_by_time(ours) == values_by_time(theirs)


# Found by asking twice, with a collection of garbage in between.
REUSED = "reused-memory"
REUSED_WHY = "3.5 now and then reads histograms of an earlier query out of memory that it uses again"

# Found by asking again.
OWN_ORDER = "own-order"
OWN_ORDER_WHY = "asked again Prometheus lists the same series in another order: that of a table of Go"
OWN_CHOICE = "own-choice"
OWN_CHOICE_WHY = "asked again Prometheus chooses others among series of equal values: those first in a table of Go"


def chooses(query):
    """Has an operator that takes some series and leaves others."""
    return re.search(r"\b(topk|bottomk|limitk)\b", query)


def rule_for(query, ours, theirs, difference):
    """The name of the first rule that explains a difference, or None."""
    return next((name for name, _, applies in RULES if applies(query, ours, theirs, difference)), None)
