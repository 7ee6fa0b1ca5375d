#!/usr/bin/env python3
"""walk - do what a page says, and see what it says one sees. usage: walk.py PROMFABRIC PAGE...

Commands are the indented lines that begin with "$ " (and those after a backslash); lines below one must be
found in its output, in their order; blocks without a command are passed over. Ports are replaced by free ones."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from ports import free_port  # noqa: E402

MARK = "~~~ the end of a command ~~~"
TIMEOUT_S = 120


def steps(page):
    """[(command, [expected line...])...]."""
    out, in_block, open_command = [], False, False
    for line in page.splitlines():
        text = line[4:] if line.startswith("    ") else None
        if text is None:
            in_block = open_command = False
        elif text.startswith("$ "):
            out.append([text[2:], []])
            in_block, open_command = True, text.endswith("\\")
        elif open_command:
            out[-1][0] += "\n" + text
            open_command = text.endswith("\\")
        elif in_block:
            out[-1][1].append(text)
    return out


def with_free_ports(text):
    """Each port is another one, everywhere; not what a variable of the shell completes."""
    ports = {}

    def other(found):
        return ports.setdefault(found[0], f"127.0.0.1:{free_port()}")
    return re.sub(r"127\.0\.0\.1:\d+(?![\d$])", other, text)


def pattern(line):
    return ".*".join(re.escape(part) for part in line.strip().split("..."))


def check(command, wanted, output):
    at = 0
    for line in wanted:
        found = re.compile(pattern(line)).search(output, at)
        if not found:
            raise SystemExit(f"FAILED: {command}\n  wanted {line.strip()!r}\n  in {output[at:]!r}")
        at = found.end()


def walk_page(program, page):
    with open(page, encoding="utf-8") as f:
        walk = steps(with_free_ports(f.read()))
    assert len(walk) > 5, f"{page} has hardly any commands"
    script = "set -m\n" + "".join(f"{command}\necho '{MARK}'\n" for command, _ in walk)
    with tempfile.TemporaryDirectory(prefix="pf-firsthour-") as folder:
        environment = dict(os.environ, PATH=os.path.dirname(program) + ":" + os.environ["PATH"])
        run = subprocess.run(["timeout", str(TIMEOUT_S), "bash", "-c", script], cwd=folder, env=environment, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    outputs = run.stdout.split(MARK + "\n")
    if len(outputs) != len(walk) + 1:
        raise SystemExit(f"FAILED: {len(outputs) - 1} of {len(walk)} commands ended\n{run.stdout[-3000:]}")
    for (command, wanted), output in zip(walk, outputs):
        check(command, wanted, output)
    print(f"{len(walk)} commands of {os.path.basename(page)} do what it says")


def main():
    for page in sys.argv[2:]:
        walk_page(sys.argv[1], page)


if __name__ == "__main__":
    main()
