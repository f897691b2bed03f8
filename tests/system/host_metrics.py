#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A collector of metrics, and a judge of them: reads the requests' protobuf itself, and /proc before and after.

usage: host_metrics.py listen FOLDER BUSY     answers at the port in FOLDER/port; keeps each body of /v1/metrics as FOLDER/N.metrics, counts
                                              those of profiles in FOLDER/profiles; the first BUSY requests get a 503
       host_metrics.py judge FOLDER           the last body of FOLDER against this machine, as FOLDER/before has it and as it is now
       host_metrics.py before FOLDER          keeps what this machine is before
       host_metrics.py print BODY             a line for each point: NAME UNIT KIND KEY=VALUE,... NUMBER START
"""
import glob, gzip, http.server, json, os, struct, sys, time

# --- protobuf ---

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at

def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = data[at:at + 8], at + 8
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size, "a message ends early"
        else:
            raise AssertionError(f"wire type {wire}")
        yield tag >> 3, value

def all_of(data, number):
    return [value for field, value in fields(data) if field == number]

def one(data, number, usual=b""):
    values = all_of(data, number)
    assert len(values) < 2, f"field {number} twice"
    return values[0] if values else usual

def attributes(data, number):
    found = {}
    for item in all_of(data, number):
        value = one(item, 2)
        assert one(item, 1) and [f for f, _ in fields(value)] == [1], "an attribute that is no text"
        key = one(item, 1).decode()
        assert key not in found, f"{key} twice"
        found[key] = one(value, 1).decode()
    return found

def points(body):
    """Of a MetricsData: the resource's attributes, and [(name, unit, kind, labels, value, start, time)]."""
    told, resource = [], None
    for resource_metrics in all_of(body, 1):
        assert resource is None, "two resources"
        resource = attributes(one(resource_metrics, 1), 1)
        for scope in all_of(resource_metrics, 2):
            for metric in all_of(scope, 2):
                name, unit = one(metric, 1).decode(), one(metric, 3).decode()
                assert one(metric, 2), f"{name} has no description"
                data = dict(fields(metric))
                kinds = [f for f in data if f in (5, 7, 9, 10, 11)]
                assert len(kinds) == 1 and kinds[0] in (5, 7), f"{name} is of kind {kinds}"
                kind = "gauge"
                if kinds[0] == 7:
                    assert one(data[7], 2, 0) == 2, f"{name} is not cumulative"
                    kind = "monotonic" if one(data[7], 3, 0) else "sum"
                for point in all_of(data[kinds[0]], 1):
                    real, whole = one(point, 4, None), one(point, 6, None)
                    assert (real is None) != (whole is None), f"{name} has no value, or two"
                    value = struct.unpack("<d", real)[0] if whole is None else struct.unpack("<q", whole)[0]
                    start, now = (struct.unpack("<Q", one(point, f, bytes(8)))[0] for f in (2, 3))
                    told.append((name, unit, kind, attributes(point, 7), value, start, now))
    return resource, told

# --- the machine, read another way than hearth does ---

def lines(path):
    with open("/proc/" + path) as f:
        return [line.split() for line in f.read().splitlines()]

def machine():
    """{name: {labels as a sorted tuple: value}} of what only grows, and the levels that are to be near."""
    m = {}
    def put(name, value, **labels):
        m.setdefault(name, {})["|".join(f"{k}={labels[k]}" for k in sorted(labels))] = value
    hz = os.sysconf("SC_CLK_TCK")
    for words in lines("stat"):
        if words[0].startswith("cpu") and words[0] != "cpu":
            for state, value in zip("user nice system idle wait interrupt softirq steal".split(), words[1:]):
                put("system.cpu.time", int(value) / hz, cpu=words[0], state=state)
    for words in lines("diskstats"):
        n, device = [int(w) for w in words[3:]], words[2]
        if not any(n[:11]): # it never did anything
            continue
        for d, at in (("read", 0), ("write", 4)):
            put("system.disk.operations", n[at], device=device, direction=d)
            put("system.disk.merged", n[at + 1], device=device, direction=d)
            put("system.disk.io", n[at + 2] * 512, device=device, direction=d)
            put("system.disk.operation_time", n[at + 3] / 1e3, device=device, direction=d)
        put("system.disk.io_time", n[9] / 1e3, device=device)
        put("system.disk.weighted_io_time", n[10] / 1e3, device=device)
        put("system.disk.pending_operations", n[8], device=device)
    with open("/proc/net/dev") as f:
        for line in f.read().splitlines()[2:]:
            device, rest = line.rsplit(":", 1)
            n = [int(w) for w in rest.split()]
            for d, at in (("receive", 0), ("transmit", 8)):
                for k, name in enumerate(("io", "packets", "errors", "dropped")):
                    put("system.network." + name, n[at + k], device=device.strip(), direction=d)
    info = {w[0].rstrip(":"): int(w[1]) * 1024 for w in lines("meminfo")}
    cached = info["Cached"] + info["SReclaimable"]
    put("system.memory.usage", info["MemFree"], state="free")
    put("system.memory.usage", info["Buffers"], state="buffered")
    put("system.memory.usage", cached, state="cached")
    put("system.memory.usage", info["MemTotal"] - info["MemFree"] - info["Buffers"] - cached, state="used")
    put("system.memory.usage", info["SReclaimable"], state="slab_reclaimable")
    put("system.memory.usage", info["SUnreclaim"], state="slab_unreclaimable")
    for minutes, value in zip((1, 5, 15), lines("loadavg")[0]):
        put(f"system.cpu.load_average.{minutes}m", float(value))
    vm = {w[0]: int(w[1]) for w in lines("vmstat")}
    put("system.paging.faults", vm["pgmajfault"], type="major")
    put("system.paging.faults", vm["pgfault"] - vm["pgmajfault"], type="minor")
    for kind, direction, name in (("major", "page_in", "pswpin"), ("major", "page_out", "pswpout"), ("minor", "page_in", "pgpgin"),
                                  ("minor", "page_out", "pgpgout")):
        put("system.paging.operations", vm[name], type=kind, direction=direction)
    return m

# name: unit, kind, whether numbers are whole
KINDS = {
    "system.cpu.time": ("s", "monotonic", False),
    "system.memory.usage": ("By", "sum", True),
    "system.disk.io": ("By", "monotonic", True),
    "system.disk.operations": ("{operations}", "monotonic", True),
    "system.disk.io_time": ("s", "monotonic", False),
    "system.disk.operation_time": ("s", "monotonic", False),
    "system.disk.weighted_io_time": ("s", "monotonic", False),
    "system.disk.merged": ("{operations}", "monotonic", True),
    "system.disk.pending_operations": ("{operations}", "sum", True),
    "system.network.io": ("By", "monotonic", True),
    "system.network.packets": ("{packets}", "monotonic", True),
    "system.network.errors": ("{errors}", "monotonic", True),
    "system.network.dropped": ("{packets}", "monotonic", True),
    "system.cpu.load_average.1m": ("{thread}", "gauge", False),
    "system.cpu.load_average.5m": ("{thread}", "gauge", False),
    "system.cpu.load_average.15m": ("{thread}", "gauge", False),
    "system.filesystem.usage": ("By", "sum", True),
    "system.filesystem.inodes.usage": ("{inodes}", "sum", True),
    "system.paging.usage": ("By", "sum", True),
    "system.paging.operations": ("{operations}", "monotonic", True),
    "system.paging.faults": ("{faults}", "monotonic", True),
}
ALWAYS = [n for n in KINDS if not n.startswith(("system.filesystem", "system.paging.usage"))]

def is_near(name, value, before, after):
    if KINDS[name][1] == "monotonic":
        slack = 0.1 if name == "system.cpu.time" else 0 # idle and wait may fall a little
        return before - slack <= value <= after + slack
    if name == "system.memory.usage":
        return min(before, after) - (2 << 30) <= value <= max(before, after) + (2 << 30) # others build here; the sum is exact
    if name.startswith("system.cpu.load"):
        return min(before, after) - 2 <= value <= max(before, after) + 2
    return 0 <= value < 100000 # operations that wait

def judge(folder):
    with open(folder + "/before") as f:
        before = json.load(f)
    bodies = sorted(glob.glob(folder + "/*.metrics"), key=lambda path: int(os.path.basename(path).split(".")[0]))
    assert bodies, "nothing came"
    with open(bodies[-1], "rb") as f:
        resource, told = points(f.read())
    after, now = machine(), time.time()
    boot = next(int(w[1]) for w in lines("stat") if w[0] == "btime")
    total = next(int(w[1]) * 1024 for w in lines("meminfo") if w[0] == "MemTotal:")
    assert resource["host.name"] == os.uname().nodename and resource["os.type"] == "linux", resource
    seen, memory = {}, {}
    for name, unit, kind, labels, value, start, at in told:
        where = f"{name} {labels} {value}"
        assert (unit, kind, isinstance(value, int)) == KINDS[name], f"{where}: {unit}, {kind}"
        assert abs(start / 1e9 - boot) <= 1, f"{where}: starts at {start}, the machine at {boot}"
        assert now - 120 < at / 1e9 <= now + 1, f"{where}: of {at}"
        key = "|".join(f"{k}={labels[k]}" for k in sorted(labels))
        assert key not in seen.setdefault(name, set()), f"{where}: twice"
        seen[name].add(key)
        if name == "system.memory.usage":
            memory[labels["state"]] = value
        if name in after and key in after[name] and key in before.get(name, {}):
            assert is_near(name, value, before[name][key], after[name][key]), f"{where}: between {before[name][key]} and {after[name][key]}"
    for name in ALWAYS:
        missing = set(after.get(name, {})) & set(before.get(name, {})) - seen.get(name, set())
        assert not missing, f"{name} lacks {sorted(missing)}"
    assert memory["used"] + memory["free"] + memory["buffered"] + memory["cached"] == total, f"{memory} is not {total}"
    disks = {(labels["mountpoint"], labels["state"]): value for name, _, _, labels, value, _, _ in told if name == "system.filesystem.usage"}
    for (place, state), value in disks.items():
        if state == "used":
            s = os.statvfs(place)
            assert abs(value - (s.f_blocks - s.f_bfree) * s.f_frsize) < 2 << 30, f"{place}: {value}"
    print(f"{len(told)} points of {len(seen)} metrics, {len(disks) // 3} file systems: {', '.join(sorted(resource))}")

# --- a collector ---

class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        state = self.server.state
        state["requests"] += 1
        status = 503 if state["requests"] <= state["busy"] else 200
        if self.path == "/v1/metrics":
            state["metrics"] += 1
            kind = "metrics" if status == 200 else "refused"
            with open(f"{state['folder']}/{state['metrics']}.part", "wb") as f:
                f.write(body)
            os.rename(f"{state['folder']}/{state['metrics']}.part", f"{state['folder']}/{state['metrics']}.{kind}")
        elif self.path == "/v1development/profiles":
            with open(state["folder"] + "/profiles", "a") as f:
                f.write(f"{len(body)}\n")
        else:
            status = 404
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass

def listen(folder, busy):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    server.state = {"folder": folder, "busy": busy, "requests": 0, "metrics": 0}
    with open(folder + "/port.part", "w") as f:
        f.write(str(server.server_address[1]))
    os.rename(folder + "/port.part", folder + "/port")
    server.serve_forever()

def show(path):
    with open(path, "rb") as f:
        resource, told = points(f.read())
    print("resource " + ",".join(f"{k}={v}" for k, v in sorted(resource.items())))
    for name, unit, kind, labels, value, start, _ in told:
        print(name, unit, kind, ",".join(f"{k}={v}" for k, v in sorted(labels.items())), value, start)

if sys.argv[1] == "listen":
    listen(sys.argv[2], int(sys.argv[3]))
elif sys.argv[1] == "before":
    with open(sys.argv[2] + "/before", "w") as f:
        json.dump(machine(), f)
elif sys.argv[1] == "judge":
    judge(sys.argv[2])
else:
    show(sys.argv[2])
