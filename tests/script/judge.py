#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the stacks of a script in a capture by what the script said of itself.

usage: judge.py [--min PERCENT] [--least STACKS] [--without STACKS] [--loop NAME] [--file NAME,...] [--all-lines] [--within NAME]
                [--whole-names] [--own PREFIX] [--cut STACKS] [--complete PERCENT]
                CAPTURE PROGRAM TYPE TRUTH

PROGRAM is the name of the executable (or of a process: pid:PID), TYPE the profile.frame.type of the script's frames, TRUTH what the
program printed: lines "frame NAME FIRST LAST CALLER..." and "root NAME" (see calls.py), and "deep NAME COUNT LEAF": where LEAF was called
by NAME, which calls itself, there are just COUNT frames of it.

A stack is right when its script frames begin with the root, each further one was called by the one before as the truth says, on a line
that it may be on, and no native frame before the last of them is of the interpreter's loop (--loop, a glob). Frames of other files, such as of the library,
may stand between: then who called is not judged. A frame whose function is not known ("script") is wrong. A user stack without any script frame counts as without: at most --without (10) may be so.
Frames called --within (a glob) are parts of the function that they were called by: on a line of that, if on one at all, and not
its callers.
With --whole-names callers are told by their whole names, and blanks in names stand as _ in the truth.
With --own the script's own frames are those whose names begin so, whatever their file.
With --cut up to so many stacks that are not right are counted apart, of which hearth says that it could not read all of the chain
("unreadable", "torn"): as where the kernel was just putting another page in the place of one that it is in.
Exit status 1 when fewer than PERCENT (100) of the stacks with script frames are right, or fewer than --least (100) are there, or fewer
than --complete (0) percent of the user stacks reached their root (a stack that is cut is right as far as it goes); 77 without Python's
protobuf."""
import argparse
import collections
import fnmatch
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../truth"))
import capture  # noqa: E402

SHOWN = 8


class Truth:
    def __init__(self, path, all_lines, whole_names):
        self.all_lines = all_lines
        self.whole_names = whole_names
        self.frames = collections.defaultdict(list)
        self.root = None
        self.depths = {}
        for words in (line.split() for line in open(path)):
            if words[:1] == ["frame"]:
                self.frames[words[1]].append((int(words[2]), int(words[3]), words[4:]))
            elif words[:1] == ["root"]:
                self.root = words[1]
            elif words[:1] == ["deep"]:
                self.depths[words[3], words[1]] = int(words[2])

    def judge(self, frames, within=None):
        """@frames: (name, line) of the script's own, outermost first; None for one of another file. Why they are wrong, or None."""
        caller, function, run = None, None, 0
        for i, frame in enumerate(frames):
            if frame and within and fnmatch.fnmatch(frame[0], within):
                if frame[1] and function in self.frames and not any(first <= frame[1] <= last for first, last, _ in self.frames[function]):
                    return f"{frame[0]} in {function} is on line {frame[1]}"
                continue
            if frame and (i or frame[0] != self.root):
                why = self.judge_frame(frame, caller, frames[i - 1] is None if i else True)
                if why:
                    return why
            if frame:
                wanted = self.depths.get((frame[0], function), run)
                if run != wanted:
                    return f"{run} frames of {function} instead of {wanted}"
                run = run + 1 if frame[0] == function else 1
                function = frame[0]
                caller = frame[0] if self.whole_names else frame[0].rpartition(".")[2]
        own = [frame for frame in frames if not frame or not within or not fnmatch.fnmatch(frame[0], within)]
        if self.root and own and own[0] and own[0][0] != self.root and not self.is_thread_root(own[0][0]):
            return f"the root is {own[0][0]}"
        return None

    def is_thread_root(self, name):
        return any("*" in callers for _, _, callers in self.frames.get(name, []))

    def judge_frame(self, frame, caller, is_behind_other):
        name, line = frame
        known = self.frames.get(name)
        if not known:
            return f"there is no function {name}"
        if (line or self.all_lines) and not any(first <= line <= last for first, last, _ in known):  # 0: code of no line, as Python has it, not with --all-lines
            return f"{name} is on line {line}"
        if is_behind_other or any(caller in callers or "*" in callers for _, _, callers in known):
            return None
        return f"{caller} does not call {name}"


class Stacks:
    def __init__(self, path):
        self.data = capture.load(path)
        self.capture = capture.Capture(self.data)
        self.tables = self.data.dictionary

    def of(self, program):
        """Yields (count, [(type, name, file, line)], attributes) of the process's stacks, frames outermost first."""
        for resource in self.data.resource_profiles:
            facts = {a.key: a.value for a in resource.resource.attributes}
            name = os.path.basename(facts["process.executable.path"].string_value) if "process.executable.path" in facts else ""
            pid = f"pid:{facts['process.pid'].int_value}" if "process.pid" in facts else ""
            if program not in (name, pid):
                continue
            for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
                for sample in profile.samples:
                    indices = self.tables.stack_table[sample.stack_index].location_indices
                    frames = [f for i in reversed(indices) for f in self.frames(self.tables.location_table[i])]
                    attributes = self.capture.attributes(sample.attribute_indices)
                    yield max(len(sample.timestamps_unix_nano), sum(sample.values)), frames, attributes

    def frames(self, location):
        kind = self.capture.attributes(location.attribute_indices).get("profile.frame.type")
        for line in reversed(location.lines):
            function = self.tables.function_table[line.function_index]
            strings = self.tables.string_table
            yield kind, strings[function.name_strindex], strings[function.filename_strindex], line.line
        if not location.lines:
            yield kind, "", "", 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--min", type=float, default=100)
    parser.add_argument("--least", type=int, default=100)
    parser.add_argument("--without", type=int, default=10)
    parser.add_argument("--loop", default="_PyEval_EvalFrameDefault")
    parser.add_argument("--file", default="calls.py,<made>")
    parser.add_argument("--all-lines", action="store_true")
    parser.add_argument("--within")
    parser.add_argument("--whole-names", action="store_true")
    parser.add_argument("--own")
    parser.add_argument("--cut", type=int, default=0)
    parser.add_argument("--complete", type=float, default=0)
    parser.add_argument("capture")
    parser.add_argument("program")
    parser.add_argument("type")
    parser.add_argument("truth")
    args = parser.parse_args()
    truth = Truth(args.truth, args.all_lines, args.whole_names)
    files = args.file.split(",")

    def is_own(name, path):
        return name.startswith(args.own) if args.own else os.path.basename(path) in files
    right, without, cut, whole, users, wrong, seen = 0, 0, 0, 0, 0, collections.Counter(), collections.Counter()
    for count, frames, attributes in Stacks(args.capture).of(args.program):
        if any(frame[0] != "kernel" for frame in frames):
            users += count
            whole += 0 if "hearth.stack.truncated" in attributes else count
        script = [(name.replace(" ", "_") if args.whole_names else name, line) if is_own(name, path) else None
                  for kind, name, path, line in frames if kind == args.type]
        last = max((i for i, frame in enumerate(frames) if frame[0] == args.type), default=0)
        # One that the innermost script function called may be about to begin or to end its own.
        loops = [name for kind, name, _, _ in frames[:last] if kind != args.type and fnmatch.fnmatch(name, args.loop)]
        if not any(frame[0] in (args.type, "script") for frame in frames):
            without += count if any(frame[0] != "kernel" for frame in frames) else 0
            continue
        unnamed = "a frame of the script has no name" if any(frame[0] == "script" for frame in frames) else None
        why = unnamed or truth.judge(script, args.within) or (f"{loops[0]} is still there" if loops else None)
        if why and attributes.get("hearth.script", "").endswith((": unreadable", ": torn")) and cut + count <= args.cut:
            cut += count
        elif why:
            text = ";".join(f"{name}:{line}" if kind == args.type else name for kind, name, _, line in frames)
            wrong[why, text] += count
        else:
            right += count
            seen.update({frame[0]: count for frame in script if frame})
    for (why, text), count in wrong.most_common(SHOWN):
        print(f"{count} x {why}:\n    {text}")
    total = right + sum(wrong.values())
    share = 100 * right / total if total else 0
    complete = 100 * whole / users if users else 0
    missing = sorted(name for name in truth.frames if not seen[name])
    print(f"{share:.2f} % of {total} stacks right, {without} without frames of the script" +
          (f", {cut} cut, as hearth says" if cut else "") + f", {complete:.2f} % complete" +
          (f"; never seen: {' '.join(missing)}" if missing else ""))
    sys.exit(0 if total >= args.least and share >= args.min and without <= args.without and complete >= args.complete else 1)


if __name__ == "__main__":
    main()
