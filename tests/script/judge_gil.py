#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge_gil.py [--none] CAPTURE PROGRAM PERCENT: does each sample of gil.py say by cpython.gil what its thread had of the lock? At least
PERCENT of each row's weight must; --none: none of them says anything. PROGRAM as of judge.py. Exit status 77 without Python's protobuf."""
import collections
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from judge import Stacks  # noqa: E402

# kind, thread.state, the innermost function, is it in a futex: what must be said
TRUTH = {
    ("samples", None, "fight", None): "held",
    ("samples", None, "digest", None): "released",
    ("off_cpu", "sleeping", "fight", True): "waiting",
    ("off_cpu", "sleeping", "nap", True): "waiting",  # it comes back
    ("off_cpu", "sleeping", "nap", False): "released",
    ("off_cpu", "sleeping", "hoard", False): None,  # usleep: held, time.sleep: released, told apart below
    ("off_cpu", "sleeping", "queue_up", True): None,  # of its own lock: released, for that of the interpreter: waiting
}
LEAST = 10  # samples of each row

arguments = [a for a in sys.argv[1:] if a != "--none"]
none = len(arguments) < len(sys.argv) - 1
stacks = Stacks(arguments[0])
strings = stacks.tables.string_table
weights, counts = collections.defaultdict(collections.Counter), collections.Counter()
for resource in stacks.data.resource_profiles:
    facts = {a.key: a.value for a in resource.resource.attributes}
    if "process.executable.path" not in facts or os.path.basename(facts["process.executable.path"].string_value) != arguments[1]:
        continue
    for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
        kind = strings[profile.sample_type.type_strindex]
        for sample in profile.samples:
            a = stacks.capture.attributes(sample.attribute_indices)
            frames = [f for i in stacks.tables.stack_table[sample.stack_index].location_indices for f in stacks.frames(stacks.tables.location_table[i])]
            script = [i for i, f in enumerate(frames) if f[0] == "cpython" and os.path.basename(f[2]) == "gil.py"]
            if not script:
                continue
            function, native = frames[script[0]][1], [f[1] for f in frames[:script[0]]]
            count = max(len(sample.timestamps_unix_nano), 1)
            weight = sum(sample.values) or count
            state = a.get("thread.state")
            futex = a.get("syscall.name") == "futex" if state == "sleeping" else None
            wanted = "-"
            if none:
                wanted = None
            elif (kind, state, function, futex) in TRUTH:
                wanted = TRUTH[kind, state, function, futex]
                if function == "hoard":
                    wanted = "held" if any("usleep" in name for name in native) else "released"
                elif function == "queue_up":
                    wanted = "waiting" if any("take_gil" in name or "RestoreThread" in name for name in native) else "released"
                    if not any("acquire" in name or "Restore" in name for name in native):  # without symbols nobody knows
                        wanted = "-"
            key = kind, state or "", function, "" if futex is None else "futex" if futex else "no futex"
            if wanted != "-":
                key += (wanted,)
                weights[key]["right" if a.get("cpython.gil") == wanted else "wrong"] += weight
                counts[key] += count
            weights[key][a.get("cpython.gil")] += weight

failed = len(counts) < (1 if none else 7)
for key in sorted(weights, key=str):
    row = dict(weights[key])
    right, wrong = row.pop("right", 0), row.pop("wrong", 0)
    verdict = f"{100 * right / (right + wrong):6.2f} %" if right + wrong else "       -"
    print(verdict, counts[key], *(word or "none" for word in key), row)
    failed |= right + wrong > 0 and counts[key] >= LEAST and 100 * right < float(arguments[2]) * (right + wrong)
    failed |= len(key) > 4 and not none and counts[key] < LEAST and key[:3] in (("samples", "", "fight"), ("samples", "", "digest"))
sys.exit(failed)
