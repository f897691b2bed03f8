# SPDX-License-Identifier: Apache-2.0
"""A busy host: compilers (make, rustc, go), node (a server under load and compiled code), Python, a Go server under load, redis
and nginx under load. All of it on the loopback interface, on free ports, started here and ended here by process group."""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from measure import QUICK, TOP, Counters, figure, map_mb, note, resident_mb, running

LOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)


def repeat(command):
    return ("sh", "-c", f"while :; do {command}; done")


def compilers(host):
    """Loops of builds into scratch folders."""
    build, cache, out = host.file("busy-build"), host.file("busy-gocache"), host.file("busy-rust")
    yield repeat(f"make -C {TOP} -j2 BUILD={build}; rm -rf {build}")
    if shutil.which("rustc"):
        yield repeat(f"rustc -O --edition 2021 --crate-name busy -o {out} {TOP}/tests/truth/rust_chain.rs")
    if shutil.which("go"):
        yield repeat(f"cd / && GO111MODULE=off GOFLAGS= GOCACHE={cache} go build -a std; rm -rf {cache}")


def redis(host):
    if not (shutil.which("redis-server") and shutil.which("redis-benchmark")):
        return note("no redis: left out")
    port = free_port()
    yield ("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", host.dir.name)
    yield repeat(f"sleep 1; redis-benchmark -p {port} -c 10 -n 200000 -t set,get,lpush,sadd,zadd,lrange_100 -q")
    return None


def nginx(host):
    if not (shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin") and shutil.which("wrk")):
        return note("no nginx or wrk: left out")
    port, root = free_port(), host.dir.name
    with open(host.file("nginx.conf"), "w", encoding="ascii") as f:
        f.write(f"daemon off; worker_processes 2; pid {root}/nginx.pid; error_log {root}/nginx.err; events {{ }}\n"
                f"http {{ access_log off; client_body_temp_path {root}; proxy_temp_path {root}; fastcgi_temp_path {root};\n"
                f"uwsgi_temp_path {root}; scgi_temp_path {root}; gzip on; gzip_types *; gzip_min_length 1;\n"
                f"server {{ listen 127.0.0.1:{port}; root {TOP}; }} }}\n")
    os.chmod(root, 0o755)
    yield (shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"), "-c", host.file("nginx.conf"))
    yield repeat(f"sleep 1; wrk -t1 -c4 -d20 http://127.0.0.1:{port}/LICENSE")
    return None


@contextlib.contextmanager
def server(*command):
    """A server that prints its port, and wrk against it."""
    with running(command, group=True, stdout=subprocess.PIPE, text=True) as (p,):
        port = int(p.stdout.readline())
        with running(repeat(f"wrk -t1 -c4 -d20 http://127.0.0.1:{port}/some/path"), group=True):
            yield


@contextlib.contextmanager
def load(host, builds=True):
    commands = [*(compilers(host) if builds else ()), *(redis(host) or ()), *(nginx(host) or ()), ("python3", os.path.join(LOAD, "compute.py"), 100000)]
    with contextlib.ExitStack() as stack:
        if shutil.which("node"):
            commands.append(("node", os.path.join(LOAD, "compute.js"), 100000))
            stack.enter_context(server("node", os.path.join(LOAD, "server.js")))
        if os.access(os.path.join(host.bench, "server_go"), os.X_OK):
            stack.enter_context(server(os.path.join(host.bench, "server_go")))
        stack.enter_context(running(*commands, group=True, cwd=host.dir.name))
        yield


SERVICES = ("redis-*", "nginx", "wrk", "python3*", "node*", "server_go")


def services(host):
    """Programs that go on doing what they do: by then the kernel has all of their code. Only they are sampled, whatever else
    the machine does."""
    warm, seconds = (10, 15) if QUICK else (30, 60)
    names = [option for name in SERVICES for option in ("--comm", name)]
    with load(host, builds=False), host.record("services.otlp", *names) as (h,):
        time.sleep(warm)
        counters = Counters(h.pid)
        before = counters.read()
        time.sleep(seconds)
        counted = {k: v - before[k] for k, v in counters.read().items()}
        memory = map_mb(h.pid) + resident_mb(h.pid)
    figure(f"misses in 1,000 samples of services after {warm} s", "", 1000 * counted["MISSES"] / max(counted["TAKEN"], 1), None, 1,
           absolute=True)
    figure("kernel maps + resident, services", "MB", memory)
    note(", ".join(f"{v} {k}" for k, v in counted.items() if v))


def busy(host):
    warm, seconds = (10, 15) if QUICK else (20, 60)
    with load(host), host.record("busy.otlp", stderr=subprocess.PIPE, text=True) as (h,):
        time.sleep(warm)
        counters = Counters(h.pid)
        before = counters.read()
        time.sleep(seconds)
        counted = {k: v - before[k] for k, v in counters.read().items()}
        memory = map_mb(h.pid) + resident_mb(h.pid)
        h.send_signal(signal.SIGINT)
        said = h.communicate()[1].strip().splitlines()[-1]
    truth = host.report("busy.otlp", "truth")
    stacks, complete = map(int, re.search(r"(\d+) with a user stack: (\d+) complete", truth).groups())
    figure(f"user stacks that reach a root, busy host, {stacks} stacks", "%", 100 * complete / stacks, None, 99.9, absolute=True,
           least=True)
    figure(f"misses in 1,000 samples after {warm} s", "", 1000 * counted["MISSES"] / counted["TAKEN"], None, 1, absolute=True)
    figure("late walks a second", "", counted["MISSES"] / seconds)
    figure("kernel maps + resident, busy host", "MB", memory)
    note(", ".join(f"{v} {k}" for k, v in counted.items() if v))
    note(said.removeprefix("hearth: "))
    for line in truth.partition("stacks, by executable")[0].splitlines()[1:]:
        note(line)
    note(truth[truth.find("stacks, by executable"):])
