#!/usr/bin/env python3
"""mutate.py - plant a bug in every row of the coordination tables, and say which test finds it.

usage: mutate.py [--table FILE]... [--folder DIR]

A row of a table of moves is { next state, what to do, flags }. Each row is broken in every way that
compiles: it leads to another state, it does nothing, each of its flags is gone, it is not there; so
is each row of the table of places. The mutant runs the unit tests, the explorers' small worlds and
some seeds of the simulation, cheapest first, until one of them fails. Exit code 1 if a mutant
survives all of them. Needs a C compiler and nothing of the build tree; a minute per hundred mutants
on a quiet machine."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
SRC = TOP / "core_workcoord/src"
TABLES = ("life_moves.c", "api_hedge.c", "api_item.c")
FLAGS = ["-std=gnu11", "-O1", "-g0", "-D_GNU_SOURCE", f"-I{TOP}", f"-I{TOP}/core_workcoord/include",
         f"-I{SRC}", f'-DPROMFABRIC_SOURCE_DIR="{TOP}"', '-DPROMFABRIC_BINARY_DIR="."']

CORE = sorted(SRC.glob("*.c"))
PURE = [TOP / "base/pure" / f"{name}.c" for name in
        ("alloc", "arena", "err", "heap", "map", "purse", "strbuf", "utf8")]
LIB = sorted((TOP / "tests/lib/core").glob("*.c"))
EXPLORE = TOP / "tests/explore"
PROGRAMS = {
    "unit": [TOP / "tests/lib/test.c", *sorted((TOP / "tests/unit/core").glob("test_life*.c")),
             *sorted((TOP / "tests/unit/core").glob("test_api_*.c"))],
    "explore_life": [EXPLORE / "explore_life.c", EXPLORE / "explore.c"],
    "explore_api": [EXPLORE / "explore_api.c", EXPLORE / "api_world.c", EXPLORE / "explore.c"],
    "sim": sorted((TOP / "tests/sim").glob("*.c")),
}
RUNS = (
    ("unit_core", ["unit"]),
    ("explore_life", "explore_life queries=3 tenants=2 cancel=1 late=1 vanish=1 pause=1 refuse=1"
     .split()),
    ("explore_api", "explore_api workers=2 items=1 lose=1 drain=1 reject=1 retry=1 fetch=1"
     .split()),
    ("explore_api hedge=1", "explore_api workers=3 items=1 warm hedge=1 lose=1 retry=1 final=1 "
     "fetch=1 drain=1".split()),
    ("sim", "sim --seed 1 --seeds 60 --events 1000".split()),
)

ROW = re.compile(r"\[(WC_\w+_HEARD_\w+)\] = \{ (WC_\w+), (\w+)(?:, ([\w |]+))? \}")
STATE = re.compile(r"^    \[(WC_\w+)\] = \{$")
PLACE = re.compile(r"\[(WC_QUERY_\w+)\] = (NO_PLACE|ONE_PLACE|AS_BEFORE)")


def states(text):
    """The states of a table, in order."""
    return [m.group(1) for line in text.splitlines() if (m := STATE.match(line))]


def row_mutants(match, all_states):
    heard, after, act, flags = match.groups()
    tail = f", {flags}" if flags else ""
    other = all_states[(all_states.index(after) + 1) % len(all_states)] if after in all_states \
        else all_states[0]
    yield f"leads to {other}", f"[{heard}] = {{ {other}, {act}{tail} }}"
    if act != "nothing":
        yield "does nothing", f"[{heard}] = {{ {after}, nothing{tail} }}"
    for flag in (flags or "0").split(" | "):
        if flag != "0":
            rest = " | ".join(f for f in flags.split(" | ") if f != flag) or "0"
            yield f"without {flag}", f"[{heard}] = {{ {after}, {act}, {rest} }}"
    yield "is not there", f"[{heard}] = {{ {after}, NULL{tail} }}"


def mutants(text):
    """(name, text) of every mutant of a file."""
    all_states, state = states(text), ""
    lines = text.splitlines(keepends=True)
    for i, line in enumerate(lines):
        if m := STATE.match(line.rstrip()):
            state = m.group(1)
        found = list(ROW.finditer(line))
        for m in found:
            for how, row in row_mutants(m, all_states):
                yield (f"{state} {m.group(1).split('_HEARD_')[1]} {how}",
                       "".join([*lines[:i], line[:m.start()] + row + line[m.end():],
                                *lines[i + 1:]]))
        for m in PLACE.finditer(line) if not found else ():
            for other in {"NO_PLACE", "ONE_PLACE"} - {m.group(2)}:
                yield (f"{m.group(1)} has {other}",
                       "".join([*lines[:i],
                                line[:m.start(2)] + other + line[m.end(2):], *lines[i + 1:]]))


class Workshop:
    """Objects of everything, of which one is replaced at a time."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.objects = {}
        sources = {*CORE, *PURE, *LIB, *(s for all_of in PROGRAMS.values() for s in all_of)}
        for source in sorted(sources):
            self.objects[source] = self.compile(source, source.parent.name + "-" + source.name)

    def compile(self, source, name):
        out = self.folder / (name + ".o")
        subprocess.run(["cc", *FLAGS, "-w", "-c", str(source), "-o", str(out)], check=True)
        return out

    def link(self, program, table, mutant):
        core = [mutant if s.name == table else self.objects[s] for s in CORE]
        rest = [self.objects[s] for s in (*PURE, *LIB, *PROGRAMS[program])]
        out = self.folder / program
        subprocess.run(["cc", *map(str, (*core, *rest)), "-o", str(out), "-lm"],
                       check=True)
        return out

    def finder(self, table, text):
        """The first run that fails with this text of the table, or None."""
        source = self.folder / table
        source.write_text(text)
        mutant = self.compile(source, "mutant")
        built = set()
        for name, command in RUNS:
            if command[0] not in built:
                self.link(command[0], table, mutant)
                built.add(command[0])
            try:
                done = subprocess.run([self.folder / command[0], *command[1:]], timeout=60,
                                      cwd=TOP, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, check=False)
            except subprocess.TimeoutExpired:
                return name + " (does not end)"
            if done.returncode:
                return name
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="append", choices=TABLES)
    parser.add_argument("--folder", help="where objects go; a temporary one if absent")
    args = parser.parse_args()
    found, survivors = {}, []
    with tempfile.TemporaryDirectory() as temporary:
        shop = Workshop(args.folder or temporary)
        for table in args.table or TABLES:
            text = (SRC / table).read_text()
            if who := shop.finder(table, text):
                sys.exit(f"{table}: {who} fails without a planted bug")
            for name, mutated in mutants(text):
                who = shop.finder(table, mutated)
                if not who:
                    survivors.append(f"{table}: {name}")
                found.setdefault((table, who), []).append(name)
                print(f"{table}: {name}: {who or 'SURVIVES'}", flush=True)
    for (table, who), names in sorted(found.items(), key=str):
        print(f"{table}: {who or 'nobody'} finds {len(names)}")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
