#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Google's protobuf makes of OTLP messages, for the codec's tests to compare with.

make DIR COUNT        writes random messages over every field of the schema: DIR/N.otlp as protobuf writes it but for the order
                      of fields that the encoder has (ORDER), and DIR/N.mixed, the same content with fields in random order,
                      lists unpacked and messages cut in two
same A B...           message A and the stream of B... say the same once all indices are followed
same A --apart B...   the same for B... as messages of their own
json DIR COUNT        DIR/N.json is DIR/N.otlp in OTLP/JSON
tojson DIR COUNT      writes DIR/N.otlp as JSON in the ways senders do: DIR/N.camel with ids in base64 as protobuf's own mapping
                      has them, DIR/N.hex with names as in the schema, 64-bit integers as numbers and ids in hex, members in
                      random order among unknown ones and nulls, and all of it indented and escaped
check FILE            the rules of the conformance checker for valid profiles, and no unknown fields
signals DIR COUNT     random logs, metrics and traces: DIR/logs-N.otlp, .camel, .hex and so on
schema                the schema in one line a field, to compare with otlp_schema.txt, which was made of the official one
"""
import base64
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../proto/opentelemetry")
PROFILES = "opentelemetry.proto.profiles.v1development."
TABLES = {"mapping_index": "mapping_table", "function_index": "function_table", "link_index": "link_table",
          "stack_index": "stack_table", "attribute_indices": "attribute_table", "location_indices": "location_table"}
ORDER = {"Location": ("lines", "attribute_indices", "mapping_index", "address"), "Line": ("line", "function_index", "column"),
         "Function": ("start_line", "system_name_strindex", "filename_strindex", "name_strindex")}


def schema_files(name="profiles_service.proto"):
    with tempfile.NamedTemporaryFile() as out:
        subprocess.check_call(["protoc", "-I" + SCHEMA, "-I" + os.path.dirname(os.path.abspath(__file__)), "--include_imports",
                               "--descriptor_set_out=" + out.name, name])
        return descriptor_pb2.FileDescriptorSet.FromString(out.read()).file


def load(message=PROFILES + "ProfilesData", name="profiles_service.proto"):
    pool = descriptor_pool.DescriptorPool()
    for file in schema_files(name):
        pool.Add(file)
    wanted = pool.FindMessageTypeByName(message)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(wanted)
    return message_factory.MessageFactory(pool).GetPrototype(wanted)


ProfilesData = load()


def table_of(field):
    return "string_table" if field.name.endswith("strindex") else TABLES.get(field.name)


def schema():
    for file in schema_files():
        for m in file.message_type:
            for f in sorted(m.field, key=lambda f: f.number):
                kind = f.type_name or f.Type.Name(f.type)[5:].lower()
                print("%s.%s.%s = %d %s%s%s" % (file.package, m.name, f.name, f.number,
                                                "repeated " if f.label == f.LABEL_REPEATED else "", kind,
                                                " oneof" if f.HasField("oneof_index") else ""))


# --- random messages ---
class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.sizes = {t: self.r.choice([1, 3, 40, 150]) for t in list(TABLES.values()) + ["string_table"]}

    def number(self, bits, signed):
        v = self.r.getrandbits(self.r.randint(0, bits))
        return v - (1 << bits) if signed and v >= 1 << (bits - 1) else v

    def scalar(self, f):
        table = table_of(f)
        if table:
            return self.r.randrange(self.sizes[table])
        if f.type == f.TYPE_STRING:
            return self.r.choice(["", "x", "name", "ключ", "a" * 130])
        if f.type == f.TYPE_BYTES:
            lengths = [0, 8] if f.name.endswith("span_id") else [0, 16] if f.name in ("trace_id", "profile_id") else [0, 8, 16]
            return bytes(self.r.getrandbits(8) for _ in range(self.r.choice(lengths)))
        if f.type == f.TYPE_DOUBLE:
            return self.r.choice([0.0, -0.0, 1.5, float("inf"), -1e300])
        if f.type == f.TYPE_BOOL:
            return self.r.random() < 0.5
        small = f.type in (f.TYPE_UINT32, f.TYPE_FIXED32, f.TYPE_SINT32)
        return self.number(32 if small else 64, f.type in (f.TYPE_INT64, f.TYPE_SFIXED64, f.TYPE_SINT32))

    def fill(self, m, depth=0):
        fields = list(m.DESCRIPTOR.fields)
        name = m.DESCRIPTOR.name
        if name == "AnyValue":
            fields = [self.r.choice(fields[:4] + fields[6:] if depth > 8 else fields)]
        elif name == "KeyValue":
            without = self.r.choice(["key", "key_strindex"])
            fields = [f for f in fields if f.name != without]
        for group in m.DESCRIPTOR.oneofs:
            if name != "AnyValue" and len(group.fields) > 1:
                chosen = self.r.choice(group.fields)
                fields = [f for f in fields if f.containing_oneof != group or f == chosen]
        for f in fields:
            if name not in ("ProfilesData", "ProfilesDictionary", "AnyValue") and f.name not in ("sample_type", "period_type", "value"):
                if self.r.random() < 0.2:
                    continue
            self.fill_field(m, f, depth)

    def fill_field(self, m, f, depth):
        if f.label != f.LABEL_REPEATED:
            if f.message_type:
                getattr(m, f.name).SetInParent()
                self.fill(getattr(m, f.name), depth + 1)
            else:
                setattr(m, f.name, self.scalar(f))
            return
        items = getattr(m, f.name)
        count = self.sizes[f.name] if f.name in self.sizes else self.r.choice([1, 2, 4] if depth < 5 else [0, 1, 2])
        for i in range(count):
            if f.message_type:
                item = items.add()
                if i or f.name not in self.sizes:
                    self.fill(item, depth + 1)
            else:
                items.append(self.scalar(f) if i or f.name != "string_table" else "")


def varint(v):
    out = bytearray()
    v &= (1 << 64) - 1
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    return bytes(out + bytes([v]))


def wrapped(f, data):
    return varint(f.number << 3 | 2) + varint(len(data)) + data


def field_bytes(f, v, r):
    if f.type in (f.TYPE_FIXED64, f.TYPE_DOUBLE):
        return varint(f.number << 3 | 1) + struct.pack("<Q" if f.type == f.TYPE_FIXED64 else "<d", v)
    if f.type in (f.TYPE_STRING, f.TYPE_BYTES):
        return wrapped(f, v.encode() if f.type == f.TYPE_STRING else v)
    if f.message_type:
        return wrapped(f, b"".join(mixed(v, r)))
    return varint(f.number << 3) + varint(int(v))


def mixed(m, r):
    """Fields in another order: lists keep theirs, but lie between other fields, numbers are unpacked, single messages are cut."""
    queues = []
    for f, v in m.ListFields():
        if f.label == f.LABEL_REPEATED:
            queues.append([field_bytes(f, x, r) for x in v])
        elif f.message_type:
            fields = mixed(v, r)
            cut = r.randint(0, len(fields))
            queues.append([wrapped(f, b"".join(fields[:cut])), wrapped(f, b"".join(fields[cut:]))])
        else:
            queues.append([field_bytes(f, v, r)])
    if r.random() < 0.3:
        queues.append([varint(60 << 3 | 2) + b"\x03new", varint(61 << 3 | 5) + b"1234"])
    out = []
    while queues:
        q = r.choice(queues)
        out.append(q.pop(0))
        queues = [q for q in queues if q]
    return out


def ordered(m):
    order, out = ORDER.get(m.DESCRIPTOR.name), []
    for f, v in sorted(m.ListFields(), key=lambda item: order.index(item[0].name) if order else item[0].number):
        values = v if f.label == f.LABEL_REPEATED else [v]
        if f.message_type:
            out += [wrapped(f, ordered(each)) for each in values]
        else:
            alone = type(m)()
            setattr(alone, f.name, v) if f.label != f.LABEL_REPEATED else getattr(alone, f.name).extend(v)
            out.append(alone.SerializeToString())
    return b"".join(out)


def make(folder, count):
    for seed in range(int(count)):
        m = ProfilesData()
        Maker(seed).fill(m)
        with open("%s/%d.otlp" % (folder, seed), "wb") as f:
            f.write(ordered(m))
        half = ProfilesData(resource_profiles=m.resource_profiles[:1])
        rest = ProfilesData(resource_profiles=m.resource_profiles[1:], dictionary=m.dictionary)
        r = random.Random(seed)
        with open("%s/%d.mixed" % (folder, seed), "wb") as f:
            f.write(b"".join(mixed(half, r) + mixed(rest, r)))


# --- meaning ---
class Meaning:
    """Messages with every index replaced by what it means in dictionary @d."""

    def __init__(self, d):
        self.d = d
        self.known = {}

    def element(self, table, i):
        if (table, i) not in self.known:
            need(0 <= i < len(getattr(self.d, table)), table, "has no element", i)
            item = getattr(self.d, table)[i]
            self.known[table, i] = item if table == "string_table" else self.of(item) if i else 0
        return self.known[table, i]

    def of(self, m):
        out = {}
        for f, v in m.ListFields():
            values = list(v) if f.label == f.LABEL_REPEATED else [v]
            table = table_of(f)
            if table and f.name != "string_table":
                values = [self.element(table, i) for i in values]
                if table == "attribute_table":  # a set
                    values.sort(key=repr)
            elif f.message_type:
                values = [self.of(x) for x in values]
            out[f.name] = values if f.label == f.LABEL_REPEATED else values[0]
        return {k: v for k, v in out.items() if v not in ("", 0)}


def flat(m):
    """One entry a sample, or what stands without samples, each with all that is above it."""
    of = Meaning(m.dictionary).of
    for rp in m.resource_profiles:
        top = {"resource": of(rp.resource), "has": rp.HasField("resource"), "url": rp.schema_url}
        if not rp.scope_profiles:
            yield top
        for sp in rp.scope_profiles:
            scope = {**top, "scope": of(sp.scope), "has_scope": sp.HasField("scope"), "scope_url": sp.schema_url}
            if not sp.profiles:
                yield scope
            for p in sp.profiles:
                own = of(p)
                samples = own.pop("samples", [None])
                own.pop("original_payload", None)
                own.pop("original_payload_format", None)
                for s in samples:
                    yield {**scope, "profile": own, "sample": s}


def read(names):
    data = b""
    for name in names:
        with open(name, "rb") as f:
            data += f.read()
    return ProfilesData.FromString(data)


def payloads(m):
    """Of a profile that was cut, one part has it."""
    return sorted((p.original_payload, p.original_payload_format) for rp in m.resource_profiles
                  for sp in rp.scope_profiles for p in sp.profiles if p.original_payload or p.original_payload_format)


def same(a, *parts):
    one = read([a])
    if parts[0] == "--apart":  # messages of their own
        others = [read([b]) for b in parts[1:]]
    else:                      # a stream, to be merged
        others = [read(parts)]
    need(list(flat(one)) == [x for o in others for x in flat(o)], "%s: not the same content" % a)
    need(payloads(one) == sorted(x for o in others for x in payloads(o)), "%s: other payloads" % a)


# --- JSON ---
def with_hex(value):
    """What protobuf's mapping gives, with ids in hex as OTLP has them."""
    if isinstance(value, list):
        return [with_hex(v) for v in value]
    if not isinstance(value, dict):
        return value
    return {k: base64.b64decode(v).hex() if k in ("traceId", "spanId", "profileId") else with_hex(v) for k, v in value.items()}


def same_json(folder, count):
    for i in range(int(count)):
        name = "%s/%d" % (folder, i)
        with open(name + ".json", encoding="utf-8") as f:
            need(json.load(f) == with_hex(json_format.MessageToDict(read([name + ".otlp"]))), name, "is not the same in JSON")


def unquoted(value, m, r):
    """As other senders write it: numbers are numbers where JSON can hold them, ids are hex; members in random order."""
    if isinstance(value, list):
        return [unquoted(v, m, r) for v in value]
    if not isinstance(value, dict):
        wide = m and m.type in (m.TYPE_INT64, m.TYPE_UINT64, m.TYPE_FIXED64, m.TYPE_SFIXED64)
        return int(value) if isinstance(value, str) and wide else value
    fields = m.fields_by_name if hasattr(m, "fields_by_name") else m.message_type.fields_by_name
    out = [("never_heard_of", [{"a": [None, True, 1e5, "x"]}, {}]), ("nothing", None)]
    for k, v in value.items():
        if k in ("trace_id", "span_id", "profile_id", "parent_span_id"):
            v = base64.b64decode(v).hex()
        else:
            v = unquoted(v, fields[k], r)
        out.append((k, v))
    r.shuffle(out)
    return dict(out)


def write_json(m, name, seed):
    with open(name + ".camel", "w", encoding="utf-8") as f:
        json.dump(json_format.MessageToDict(m), f, ensure_ascii=False, separators=(",", ":"))
    value = json_format.MessageToDict(m, preserving_proto_field_name=True)
    with open(name + ".hex", "w", encoding="utf-8") as f:
        json.dump(unquoted(value, m.DESCRIPTOR, random.Random(seed)), f, indent=2)


def tojson(folder, count):
    for i in range(int(count)):
        name = "%s/%d" % (folder, i)
        write_json(read([name + ".otlp"]), name, i)


def without_references(m):
    """Only profiles have a dictionary. A value that is not set is not written either."""
    for f, v in m.ListFields():
        for x in v if f.label == f.LABEL_REPEATED else [v]:
            if f.message_type:
                without_references(x)
        if f.name in ("value", "body") and f.message_type and not v.ByteSize():
            m.ClearField(f.name)
    for name in ("key_strindex", "string_value_strindex"):
        if name in m.DESCRIPTOR.fields_by_name:
            m.ClearField(name)


def signals(folder, count):
    for kind in ("logs", "metrics", "traces"):
        make_message = load("signals.%sData" % kind.capitalize(), "signals.proto")
        for seed in range(int(count)):
            m = make_message()
            Maker(seed).fill(m)
            without_references(m)
            name = "%s/%s-%d" % (folder, kind, seed)
            with open(name + ".otlp", "wb") as f:
                f.write(m.SerializeToString())
            write_json(m, name, seed)


# --- validity ---
def need(ok, *text):
    if not ok:
        sys.exit(" ".join(map(str, text)))


def check(name):
    m = read([name])
    d = m.dictionary
    with open(name, "rb") as f:
        text = subprocess.run(["protoc", "-I" + SCHEMA, "--decode=" + PROFILES + "ProfilesData", "profiles.proto"], stdin=f,
                              check=True, capture_output=True, text=True).stdout
    need(not re.search(r"^\s*\d+[:{ ]", text, re.M), "unknown fields")
    for table in list(TABLES.values()) + ["string_table"]:
        items = getattr(d, table)
        need(len(items), table, "is empty")
        need(not (items[0] if table == "string_table" else items[0].ByteSize()), table, "[0] is not empty")
        need(table != "string_table" or len(set(items)) == len(items), "duplicate strings")
    for x in d.mapping_table:
        keys(x, d)
        need(x.memory_start < x.memory_limit or not (x.memory_start or x.memory_limit), "mapping", x)
    for x in d.location_table:
        keys(x, d)
        need(all(line.line >= 0 and line.column >= 0 for line in x.lines), "line", x)
    for x in list(d.link_table)[1:]:
        need(len(x.trace_id) == 16 and len(x.span_id) == 8, "link", x)
    of = Meaning(d).of
    of(d)  # looks at every index
    need(len(m.resource_profiles), "no resource")
    for rp in m.resource_profiles:
        need(rp.HasField("resource") and len(rp.scope_profiles), "resource without scope")
        for sp in rp.scope_profiles:
            need(sp.HasField("scope") and len(sp.profiles), "scope without profile")
            for p in sp.profiles:
                of(p)
                check_profile(p, d)


def keys(x, d):
    names = [d.attribute_table[i].key_strindex for i in x.attribute_indices]
    need(len(set(names)) == len(names), "attribute twice in", x)


def check_profile(p, d):
    keys(p, d)
    need(p.HasField("sample_type") and p.HasField("period_type"), "types missing")
    shapes = set()
    for s in p.samples:
        keys(s, d)
        values, times = len(s.values), len(s.timestamps_unix_nano)
        need(values == times if values and times else times or values == 1, "shape of", s)
        need(all(p.time_unix_nano <= t < p.time_unix_nano + p.duration_nano for t in s.timestamps_unix_nano), "window", s)
        shapes.add((bool(values), bool(times)))
    need(len(shapes) <= 1, "samples of different shapes")


if __name__ == "__main__":
    {"make": make, "same": same, "check": check, "json": same_json, "tojson": tojson, "signals": signals, "schema": schema}[sys.argv[1]](*sys.argv[2:])
