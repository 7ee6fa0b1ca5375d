#!/usr/bin/env python3
"""manual.py - manual pages and shell completion from what the program says of itself.

usage: manual.py BINARY FOLDER     writes man/man1/*.1 and bash-completion/completions/promfabric

`promfabric --help` lists the commands and `promfabric COMMAND --help` the flags: both are read here,
so that pages and completion cannot differ from the program."""
import pathlib
import re
import subprocess
import sys

COMMAND = re.compile(r"^  ([a-z][a-z-]*)\s{2,}(\S.*)$")
FLAG = re.compile(r"^  (--[a-z0-9-]+)(?: ([A-Z][A-Z:]*))?\s+(\S.*)$")


def output(binary, *args):
    return subprocess.run([binary, *args], check=True, capture_output=True, text=True).stdout


def roff(text):
    """Text that roff prints as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line
                     for line in text.splitlines())


def read_commands(binary):
    found = [COMMAND.match(line) for line in output(binary, "--help").splitlines()]
    commands = [(match.group(1), match.group(2)) for match in found if match]
    if not commands:
        raise SystemExit("manual.py: promfabric --help lists no command")
    return commands


def read_command(binary, name):
    """(usage, paragraphs, flags) of one command."""
    text = output(binary, name, "--help") if name != "version" else "usage: promfabric version\n"
    usage, _, rest = text.partition("\n")
    words, _, flags = rest.partition("\nflags ")
    rows = [FLAG.match(line) for line in flags.splitlines()]
    return (usage.removeprefix("usage: "), words.strip(),
            [match.groups() for match in rows if match])


def header(title, version):
    return f'.TH {roff(title.upper())} 1 "" "Promfabric {version}" "Promfabric"\n'


def page(name, summary, usage, words, flags, version):
    text = header(f"promfabric-{name}", version)
    text += f".SH NAME\n{roff(f'promfabric-{name}')} \\- {roff(summary)}\n"
    text += f".SH SYNOPSIS\n.B {roff(usage)}\n"
    if words:
        text += f".SH DESCRIPTION\n{roff(words)}\n"
    if flags:
        text += ".SH FLAGS\n"
    for flag, value, what in flags:
        text += f".TP\n.B {roff(flag)}" + (f" \\fI{value}\\fR" if value else "") + "\n"
        text += roff(what) + "\n"
    if flags:
        text += (".SH ENVIRONMENT\nEvery flag is also read from PROMFABRIC_FLAG, in capital letters and "
                 "with underscores;\nthe command line wins.\n")
    return text + ".SH SEE ALSO\n.BR promfabric (1)\n"


def main_page(commands, version):
    text = header("promfabric", version)
    text += ".SH NAME\npromfabric \\- PromQL over Parquet, answered by a fabric of workers\n"
    text += ".SH SYNOPSIS\n.B promfabric\n.I COMMAND\n.RI [ FLAG... ]\n.SH COMMANDS\n"
    for name, summary in commands:
        text += f".TP\n.BR {roff('promfabric-' + name)} (1)\n{roff(summary)}\n"
    text += (".SH FILES\n.TP\n.I /etc/promfabric/*.env\nflags of the services\n"
             ".TP\n.I /var/lib/promfabric/store\nthe default store of the services\n")
    return text


def completion(rows):
    cases = "".join(f'    {name}) words="{" ".join(flag for flag, _, _ in flags)}" ;;\n'
                    for name, flags in rows)
    return f"""# bash completion for promfabric
_promfabric() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} words
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{" ".join(name for name, _ in rows)} --help" -- "$current"))
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}    *) return ;;
    esac
    case $current in
    -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
    *) COMPREPLY=($(compgen -f -- "$current")) ;;
    esac
}}
complete -o filenames -F _promfabric promfabric
"""


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    binary, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    version = output(binary, "version").split()[1]
    man = folder / "man" / "man1"
    completions = folder / "bash-completion" / "completions"
    man.mkdir(parents=True, exist_ok=True)
    completions.mkdir(parents=True, exist_ok=True)
    commands, rows = read_commands(binary), []
    for name, summary in commands:
        usage, words, flags = read_command(binary, name)
        rows.append((name, flags))
        (man / f"promfabric-{name}.1").write_text(page(name, summary, usage, words, flags, version))
    (man / "promfabric.1").write_text(main_page(commands, version))
    (completions / "promfabric").write_text(completion(rows))


main()
