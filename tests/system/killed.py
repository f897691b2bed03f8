#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills hearth with SIGKILL at random moments and looks for what is left: BPF programs, maps and links by their ids, names below
/sys/fs/bpf, processes, descriptors in a recorded command, files in TMPDIR and beside the capture. FILE.part is what may stay, and
must be readable.
    killed.py HEARTH ROUNDS BUSY_PID

One line a round; exit status 1 when something was left."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

hearth, rounds, busy = sys.argv[1], int(sys.argv[2]), sys.argv[3]
OURS = {"on_sample", "on_sample_tail", "walk_tail", "send_tail", "on_new_task", "unwind_blocks", "mappings", "procs", "first_level"}
KINDS = {"prog_id": "prog", "map_id": "map", "link_id": "link"}
PATIENCE = 10  # seconds; the kernel frees maps after a grace period
work, tmp = os.path.abspath("work"), os.path.abspath("tmp")

SCENES = {
    "record": ["record", "-F", "99", "--report-interval", "100ms", "-o", "x.otlp"],
    "record a command": ["record", "-F", "99", "--report-interval", "100ms", "-o", "x.otlp", "--", "sleep", "60"],
    "run": ["run", "-F", "99", "--report-interval", "100ms", "-p", busy, "--sink", "file=x.otlp", "--sink", "null"],
}


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


def birth(pid):
    """What tells a process from another that has its pid later; None when it is gone (a zombie is)."""
    stat = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return stat[19] if stat and stat[0] not in "ZX" else None


def family(pid, found):
    """Adds @pid and its descendants to @found, a map of pid to birth."""
    born = birth(pid)
    if born is None:
        return
    found[pid] = born
    for child in read(f"/proc/{pid}/task/{pid}/children").split():
        family(int(child), found)


def bpf_ids(pid, found):
    try:
        fds = os.listdir(f"/proc/{pid}/fdinfo")
    except OSError:
        return
    for fd in fds:
        for line in read(f"/proc/{pid}/fdinfo/{fd}").splitlines():
            key, _, value = line.partition(":")
            if key in KINDS and value.strip() != "0":
                found.add((KINDS[key], int(value)))


def bpf_list(kind):
    out = subprocess.run(["bpftool", "-j", kind, "show"], capture_output=True, text=True)
    return json.loads(out.stdout) if out.returncode == 0 and out.stdout.strip() else []


def bpf_left(ids):
    """Of @ids what still is, and whatever is called like ours and held by nobody."""
    left, objects = [], {kind: bpf_list(kind) for kind in KINDS.values()}
    held = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        bpf_ids(pid, held)
    for kind, items in objects.items():
        for item in items:
            if (kind, item["id"]) in ids or (item.get("name") in OURS and (kind, item["id"]) not in held):
                left.append(f"{kind} {item['id']} {item.get('name', '')}")
    return left


def is_command(pid):
    return read(f"/proc/{pid}/comm").strip() == "sleep"


def left(processes, ids, pinned):
    found = bpf_left(ids)
    found += [f"below /sys/fs/bpf: {p}" for p in pins() - pinned]
    found += [f"process {p} {read(f'/proc/{p}/cmdline')!r}" for p, b in processes.items() if birth(p) == b and not is_command(p)]
    found += [f"in TMPDIR: {f}" for f in os.listdir(tmp)]
    found += [f"beside the capture: {f}" for f in os.listdir(work) if f != "x.otlp.part"]
    return found


def pins():
    return {os.path.join(d, n) for d, dirs, files in os.walk("/sys/fs/bpf") for n in dirs + files}


def end_command(processes):
    """The recorded command goes on, as it does below other profilers; it must hold nothing of ours."""
    wrong = []
    for pid, born in processes.items():
        if birth(pid) == born and is_command(pid):
            held = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd") if int(fd) > 2]
            wrong += [f"the command holds {h}" for h in held]
            os.kill(pid, signal.SIGKILL)
    return wrong


def check_capture():
    part = os.path.join(work, "x.otlp.part")
    if not os.path.exists(part) or not os.path.getsize(part):
        return []
    out = subprocess.run([hearth, "report", part], capture_output=True, text=True)
    return [f"FILE.part cannot be read: {out.stderr}"] if out.returncode or "sample" not in out.stdout else []


def watch(pid, seconds, processes, ids):
    end = time.monotonic() + seconds
    while True:
        family(pid, processes)
        for p in list(processes):
            bpf_ids(p, ids)
        if time.monotonic() >= end:
            return
        time.sleep(0.002)


def play(scene, helper_first):
    """One round: what was wrong, and what it was about."""
    for d in work, tmp:
        shutil.rmtree(d, ignore_errors=True)
        os.mkdir(d)
    pinned, processes, ids, wrong = pins(), {}, set(), []
    delay = 2 ** random.uniform(-7, 1)  # 8 ms to 2 s: loading takes part of it
    child = subprocess.Popen([hearth] + SCENES[scene], cwd=work, env=dict(os.environ, TMPDIR=tmp), stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    watch(child.pid, delay, processes, ids)
    if helper_first:
        for pid in [p for p in processes if read(f"/proc/{p}/comm").startswith("hearth-elf")]:
            os.kill(pid, signal.SIGKILL)
        watch(child.pid, random.uniform(0, 0.5), processes, ids)
    child.kill()
    child.wait()
    wrong += end_command(processes)
    # The kernel loses a prog_array for good when somebody opens it by its id while it goes: prog_array_map_clear() takes a reference
    # for work that may be queued already (kernel/bpf/arraymap.c). So nobody looks at once.
    time.sleep(0.3)
    end = time.monotonic() + PATIENCE
    while True:
        rest = left(processes, ids, pinned)
        if not rest or time.monotonic() > end:
            break
        time.sleep(0.2)
    wrong += rest + check_capture()
    what = f"{scene}, {'its helper, then it' if helper_first else 'killed'} after {delay * 1000:.0f} ms: " \
           f"{len(processes)} processes, {len(ids)} BPF objects, {sum(1 for _ in os.scandir(work))} files"
    return wrong, what, len(ids)


def main():
    seed = random.randrange(1 << 32)
    random.seed(seed)
    print(f"seed {seed}")
    bad = loaded = 0
    for i in range(rounds):
        wrong, what, objects = play(list(SCENES)[i % len(SCENES)], i % 4 == 3)
        print("  " + what + "".join(f"\n    LEFT: {w}" for w in wrong))
        bad += bool(wrong)
        loaded += objects > 0
        if bad == 3:
            break
    print(f"{i + 1} rounds, {loaded} with BPF objects loaded, {bad} left something")
    return bad > 0 or loaded == 0


sys.exit(main())
