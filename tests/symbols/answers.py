# SPDX-License-Identifier: Apache-2.0
"""What is asked and answered: random code addresses of an ELF file, the answers of hearth and of llvm-symbolizer in the same form,
what the symbol tables hold."""
import bisect
import collections
import random
import re
import subprocess

Frame = collections.namedtuple("Frame", "name file line column")


def run(command, text="", most_status=0):
    done = subprocess.run(command, input=text, capture_output=True, text=True, errors="surrogateescape", check=False)
    if not 0 <= done.returncode <= most_status:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


# --- ELF, by readelf ---
Section = collections.namedtuple("Section", "name kind addr size flags")


def sections(path):
    found = []
    for line in run(["readelf", "-SW", path]).splitlines():
        m = re.match(r"\s+\[ *\d+\] (\S*) +(\S+) +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) [0-9a-f]+ +([A-Z]*) ", line)
        if m:
            found.append(Section(m[1], m[2], int(m[3], 16), int(m[4], 16), m[5]))
    return found


def code_sections(path):
    """Without the linkage table's: no judge names what is there. tests/system/symbols.sh looks at it by objdump."""
    return [s for s in sections(path) if "X" in s.flags and s.kind == "PROGBITS" and not s.name.startswith((".plt", ".iplt"))]


def draw(path, count, seed):
    places = code_sections(path)
    rng = random.Random(f"{seed} {path.rsplit('/', 1)[-1]}")
    chosen = rng.choices(places, [s.size for s in places], k=count)
    return sorted(s.addr + rng.randrange(s.size) for s in chosen)


Symbol = collections.namedtuple("Symbol", "addr size kind name")


class Symbols:
    """The named code of the symbol tables of some files."""

    def __init__(self, paths):
        seen = set()
        for path in paths:
            for line in run(["readelf", "-sW", path]).splitlines():
                m = re.match(r"\s*\d+: ([0-9a-f]+) +(\S+) (FUNC|NOTYPE|IFUNC|OBJECT) +\S+ +\S+ +(?:\[.*\] +)?(\w+) (\S+)", line)
                if m and m[4] != "UND":
                    seen.add(Symbol(int(m[1], 16), int(m[2], 0), m[3], m[5].split("@")[0]))
        self.all = sorted(seen)
        self.starts = [s.addr for s in self.all]
        self.labels = {s.name for s in self.all if not s.size}
        self.longest = max((s.size for s in self.all), default=0)

    def at(self, addr):
        """Those whose bytes @addr is in, the nearest start first."""
        covering = []
        i = bisect.bisect_right(self.starts, addr) - 1
        while i >= 0 and self.starts[i] + self.longest > addr:
            s = self.all[i]
            if s.addr + s.size > addr and s.kind != "OBJECT":
                covering.append(s)
            i -= 1
        return covering

    def names_at(self, addr):
        """The names that are equally right: at the nearest start of those, or at the last start where all there have no size."""
        covering = self.at(addr)
        if covering:
            return {s.name for s in covering if s.addr == covering[0].addr}
        i = bisect.bisect_right(self.starts, addr)
        last = [s for s in self.all[max(0, i - 40):i] if s.addr == self.starts[i - 1]]
        return {s.name for s in last} if not any(s.size for s in last) else set()


# --- answers: a list of frames for each address, [] for none ---
def parse(text):
    """llvm-symbolizer's output."""
    answers = []
    for block in text.split("\n\n"):
        lines = block.strip("\n").split("\n")
        if len(lines) < 2:
            continue
        frames = []
        for name, place in zip(lines[::2], lines[1::2]):
            path, line, column = place.rsplit(":", 2)
            frames.append(Frame(name, path, int(line), int(column)))
        answers.append([] if [(f.name, f.line) for f in frames] == [("??", 0)] and frames[0].file == "??" else frames)
    return answers


def ask(command, addrs):
    text = "".join(f"{a:#x}\n" for a in addrs)
    answers = parse(run(command, text))
    if len(answers) != len(addrs):
        raise SystemExit(f"{' '.join(command)}: {len(answers)} answers to {len(addrs)} addresses")
    return answers


def ask_hearth(hearth, path, addrs):
    return ask([*hearth, path, "-"], addrs)


def ask_llvm(path, addrs):
    return ask(["llvm-symbolizer", "--inlines", "--no-demangle", f"--obj={path}"], addrs)


def ask_elfutils(path, addrs):
    """eu-addr2line -i: the same form, but slow."""
    text = run(["eu-addr2line", "-i", "-f", "-a", "-e", path], "".join(f"{a:#x}\n" for a in addrs), 1)  # 1: one has no name
    found = []
    for block in re.split(r"^0x[0-9a-f]{16}\n", text, flags=re.M)[1:]:
        lines = block.splitlines()
        frames = []
        for name, place in zip(lines[::2], lines[1::2]):
            file, line, column = (place.split(" (")[0].split(":") + ["0", "0"])[:3]
            frames.append(Frame(re.sub(r" inlined (at|in) .*", "", name), file, int(line or 0), int(column or 0)))
        found.append([] if not frames or (frames[0].name == "??" and not frames[0].line) else frames)
    if len(found) != len(addrs):
        raise SystemExit(f"eu-addr2line {path}: {len(found)} answers to {len(addrs)} addresses")
    return found


def demangle(names):
    """Without parameter lists, by c++filt."""
    names = list(names)
    return dict(zip(names, run(["c++filt", "-p", "-i"], "".join(n + "\n" for n in names)).splitlines()))
