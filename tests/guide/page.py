"""Reads a page of the guide: what is to be run, what files it shows, what output it promises.

    ```console                 lines that begin with `$ ` are commands, `> ` continues one; what stands below is their output
    ```console server          one command that stays: it gets a terminal of its own until the page has ended
    ```c file=greeter.c        a file, in any language, written when the reader comes to it
    # not run by the tests: REASON      the first line of a console block that is only looked at

In an output `...` alone on a line stands for any lines, inside a line for any text; `^C` on a line of its own is that key, pressed once all that
stands above has been said. A command that ends with `&` goes on behind; the next one waits until it has said what is shown, and
what the shell says about jobs is passed over. Output that is not shown must not be there. A command must succeed, unless the next one asks for `$?`.
A comment `<!-- peers: rrq -->` says which foreign programs a page needs.

SPDX-License-Identifier: Apache-2.0
"""
import re

NOT_RUN = "# not run by the tests: "
INTERRUPT = "^C"


class BadPage(Exception):
    pass


class Command:
    def __init__(self, line, text, server=False):
        self.line, self.text, self.server = line, text, server
        self.output = []  # expected lines

    def parts(self):
        """The output in two: what comes before the key, None where no key is pressed; and all of it."""
        if INTERRUPT not in self.output:
            return None, self.output
        at = self.output.index(INTERRUPT)
        return self.output[:at], self.output[:at] + self.output[at + 1:]


class File:
    def __init__(self, line, name, text):
        self.line, self.name, self.text = line, name, text


class Page:
    def __init__(self, path):
        self.path = path
        self.steps, self.not_run, self.peers, self.links = [], [], [], []
        with open(path, encoding="utf-8") as f:
            self._read(f.read().splitlines())

    def _bad(self, line, why):
        raise BadPage("%s:%d: %s" % (self.path, line, why))

    def _read(self, lines):
        at = 0
        while at < len(lines):
            fence = re.match(r"```(\S*) ?(.*)$", lines[at])
            if fence:
                end = next((i for i in range(at + 1, len(lines)) if lines[i] == "```"), None)
                if end is None:
                    self._bad(at + 1, "a block without an end")
                self._block(at + 1, fence.group(1), fence.group(2), lines[at + 1:end])
                at = end
            elif re.match(r"    \$ |    (everywire|build/everywire|curl) ", lines[at]):
                self._bad(at + 1, "a command that no test runs: put it into a ```console block")
            else:
                self.links += [(at + 1, link) for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", lines[at]))]
                peers = re.match(r"<!-- peers: (.*) -->", lines[at])
                if peers:
                    self.peers = peers.group(1).split()
            at += 1

    def _block(self, line, language, rest, body):
        name = re.match(r"file=(\S+)$", rest)
        if name:
            self.steps.append(File(line, name.group(1), "\n".join(body) + "\n"))
        elif language == "console":
            self._console(line, rest, body)
        elif language in ("sh", "bash", "shell"):
            self._bad(line, "commands stand in a ```console block, behind `$ `")
        elif rest:
            self._bad(line, "what is '%s'?" % rest)

    def _console(self, line, rest, body):
        if rest not in ("", "server"):
            self._bad(line, "what is '%s'?" % rest)
        kept = self.steps
        if body and body[0].startswith(NOT_RUN):
            kept, body, line = self.not_run, body[1:], line + 1
        found = []
        for number, text in enumerate(body, line + 1):
            if text.startswith("$ "):
                found.append(Command(number, text[2:], rest == "server"))
            elif not found:
                self._bad(number, "a console block begins with a command, behind `$ `")
            elif text.startswith("> ") and not found[-1].output:
                found[-1].text += "\n" + text[2:]
            else:
                found[-1].output.append(text.rstrip())
        for command in found:
            while command.output and not command.output[-1]:
                command.output.pop()
        if not found or (rest == "server" and len(found) != 1):
            self._bad(line, "a console block has commands; that of a server has one")
        kept += found


def pattern(lines, more):
    """What an output must match; more: something may follow."""
    text = ""
    for line in lines:
        text += r"(?:.*\n)*?" if line == "..." else ".*?".join(re.escape(part) for part in line.split("...")) + r"[ \t]*\n"
    return re.compile(text + (r"(?:.*\n)*" if more else "") + r"\Z")
