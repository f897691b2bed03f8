# SPDX-License-Identifier: Apache-2.0
"""docs_commands.py HEARTH TOP: tries each command line of hearth's in the documentation, with --help, which reads all of them and does
nothing, and those of docs/compose; looks for the folders that they name; and compares the rights that docs/kubernetes.md and the manifests have."""
import glob
import os
import re
import shlex
import subprocess
import sys

hearth, top = sys.argv[1:]
PLACES = {"PID": "1", "N": "1", "HZ": "99", "TIME": "1s"}
wrong, tried = [], 0


def texts(line):
    """Command lines in a line of Markdown: the line, where it is a block of code, and what stands in backquotes."""
    if line.startswith("    ") and "`" not in line:
        yield line.strip()
    yield from re.findall(r"`([^`]+)`", line)


def words_of(text):
    """The words of a command of hearth's; None: it is another's, or only a part of one."""
    text = re.sub(r"^(sudo )?", "", re.split(r"\s+#\s", text)[0])
    text = re.split(r"\s(?:\|\|?|&&?|;|[0-9]?>)\s?", text)[0]
    if not re.match(r"hearth( [-a-z]|$)", text) or "..." in text:
        return None
    words = [PLACES.get(w, w) for w in shlex.split(text)[1:]]
    if not words or words[0].startswith("-"):
        words.insert(0, "run")  # which `hearth` alone is
    return words[:1] + ["--help"] + words[1:]


for name in [os.path.join(top, "README.md")] + sorted(glob.glob(os.path.join(top, "docs", "*.md"))):
    for number, line in enumerate(open(name), 1):
        for text in texts(line):
            words = words_of(text)
            if words:
                tried += 1
                done = subprocess.run([hearth, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
                # an option that is spoken of has no value behind it
                if done.returncode and "needs a value" not in done.stderr:
                    wrong.append(f"{name}:{number}: {text}: {done.stderr.strip()}")
            if re.search(r"-address[ =]:\d", text):  # hearth asks for a host
                wrong.append(f"{name}:{number}: an address without a host: {text}")
            for folder in re.findall(r"(?<![\w/])(?:deploy|docs)/[\w./-]+", text):
                if not os.path.exists(os.path.join(top, folder.rstrip("."))):
                    wrong.append(f"{name}:{number}: there is no {folder}")

try:
    import yaml

    block = re.search(r"(?:^    .*\n)*^    kind: ClusterRole\n(?:^    .*\n)*", open(os.path.join(top, "docs/kubernetes.md")).read(), re.M).group()
    told = [d for d in yaml.safe_load_all(re.sub(r"^    ", "", block, flags=re.M)) if d]
    made = list(yaml.safe_load_all(open(os.path.join(top, "deploy/kubernetes/base/rbac.yaml"))))
    for name in sorted(glob.glob(os.path.join(top, "docs/compose/*/compose.yaml"))):
        for service in yaml.safe_load(open(name))["services"].values():
            if service["image"] == "hearth":
                tried += 1
                command, *rest = service["command"]
                done = subprocess.run([hearth, command, "--help", *rest], capture_output=True, text=True, timeout=60)
                if done.returncode:
                    wrong.append(f"{name}: {done.stderr.strip()}")
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        a, b = ([d for d in docs if d["kind"] == kind][0] for docs in (told, made))
        for key in ("rules", "roleRef"):
            if a.get(key) != b.get(key):
                wrong.append(f"docs/kubernetes.md: {kind}.{key} is not the manifest's: {a.get(key)} and {b.get(key)}")
except ImportError:
    print("left out: rights: no python3-yaml")

print(*wrong, sep="\n")
print(f"{tried} command lines tried")
sys.exit(bool(wrong) or tried < 150)
