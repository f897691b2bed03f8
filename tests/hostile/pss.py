#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of a process of hearth's and all below it: pss.py PID SECONDS. The sum of their PSS, without the pages of BPF's maps and of rings that
are in view, of programs and of libraries, each quarter of a second; prints the least, the most and the last, in MB, and the processes that had most in it."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "bench"))
from measure import family_pss_mb  # noqa: E402

pid, seconds = int(sys.argv[1]), float(sys.argv[2])
end = time.monotonic() + seconds
seen = []
most = {}
while True:
    now = family_pss_mb(pid, without_code=True)
    seen.append(sum(now.values()))
    if seen[-1] == max(seen):
        most = now
    if time.monotonic() >= end:
        break
    time.sleep(0.25)
print(f"{min(seen):.1f} {max(seen):.1f} {seen[-1]:.1f}", " ".join(f"{name}={mb:.1f}" for name, mb in sorted(most.items(), key=lambda e: -e[1])[:4]))
