# SPDX-License-Identifier: Apache-2.0
"""Recording at 99 Hz: size of the capture beside perf's of the same time, on a host that does few things and on one that compiles;
the time from the end of a capture to its file, by format; resident memory while samples come as fast as they may."""
import os
import signal
import subprocess
import time

from measure import QUICK, compiling, fail, figure, note, resident_mb, running, settle

SECONDS = 10 if QUICK else 30
FORMATS = ("otlp", "pb.gz", "html")


def end(process, path):
    """Tells a recorder to end; milliseconds until the file is there, and until the recorder is gone."""
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    while not os.path.exists(path) and process.poll() is None:
        time.sleep(0.001)
    written = time.monotonic()
    process.wait(60)
    if not os.path.exists(path):
        fail(f"{path} was not written")
    return (written - start) * 1e3, (time.monotonic() - start) * 1e3


def sizes(host, name, load):
    with load, host.record(f"{name}.otlp") as (h,):
        settle(h, 0, "hearth record")
        with running(*host.perf_command(f"{name}.data"), stop=signal.SIGINT):
            time.sleep(SECONDS)
            end(h, host.file(f"{name}.otlp"))
    mine, packed = os.path.getsize(host.file(f"{name}.otlp")), host.file(f"{name}.otlp.zst")
    other = os.path.getsize(host.file(f"{name}.data")) / 1e3 if host.perf else None
    subprocess.run([host.hearth, "convert", host.file(f"{name}.otlp"), packed], check=True)
    figure(f"capture of {SECONDS} s, {name}", "kB", mine / 1e3, other, 0.2)
    figure(f"the same as .otlp.zst, {name}", "kB", os.path.getsize(packed) / 1e3, other, 0.2)


def ends(host):
    """One after the other. A round before fills the index of names."""
    took = []
    with compiling(host):
        for seconds, form in [(5, "otlp")] + [(SECONDS, f) for f in FORMATS]:
            with host.record(f"end{seconds}.{form}") as (h,):
                settle(h, seconds, "hearth record")
                took.append(end(h, host.file(f"end{seconds}.{form}")))
    for form, (written, gone) in zip(FORMATS, took[1:]):
        figure(f"from the end of {SECONDS} s to the .{form}, compiling", "ms", written, None, 200, absolute=True)
        note(f"the recorder is gone after {gone:.0f} ms")


def long(host):
    """At 9,999 Hz, of programs that come and go: five minutes have as many samples as an hour of 833 Hz."""
    seconds = 20 if QUICK else 300
    with host.load("short", group=True), host.record("long.otlp", hz=9999) as (h,):
        settle(h, 0, "hearth record")
        sizes_mb = []
        for _ in range(4):
            time.sleep(seconds / 4)
            sizes_mb.append(resident_mb(h.pid))
    note(f"{os.path.getsize(host.file('long.otlp')) >> 20} MB; resident {', '.join(f'{mb:.1f}' for mb in sizes_mb)} MB")
    figure(f"resident after {seconds} s at 9,999 Hz (beside it: a quarter)", "MB", sizes_mb[-1], sizes_mb[0], 1.1)


def record(host):
    sizes(host, "steady", host.load("cpp_chain"))
    sizes(host, "compiling", compiling(host))
    ends(host)
    long(host)
