# SPDX-License-Identifier: Apache-2.0
"""Tests of the steps that make another tree of the flame graph's, which page.py runs."""
from page_driver import ESCAPE, check, close


def test_steps(p):
    p.graph()
    for key, row, part, name, expect in (
            ("f", 3, 0.1, "focus", lambda: close(p.share("parse<std::vector<std::string> >"), 100)),
            ("F", 2, 0.57, "subtree", lambda: close(p.share("fib"), 100) and "parse" not in str(p.names())),
            ("m", 2, 0.1, "merge", lambda: "serve_forever" not in p.names() and close(p.share("parse<std::vector<std::string> >"), 30)),
            ("d", 2, 0.1, "drop", lambda: "serve_forever" not in p.names() and close(p.share("main"), 100 * 1 / 9)),
            ("c", 3, 0.1, "collapse", lambda: "next_token" not in p.names() and close(p.share("parse<std::vector<std::string> >"), 30)),
            ("C", 2, 0.1, "library", lambda: "[shop]" in p.names() and "serve_forever" not in p.names()),
            ("M", 2, 0.1, "hidelib", lambda: "main" not in p.names() and close(p.share("vfs_read"), 15)),
            ("r", 2, 0.57, "recursion", lambda: p.names().count("fib") == 1 and close(p.share("fib"), 5))):
        p.go("by=none")
        p.box(part, row)
        p.b.keys(ESCAPE)
        p.b.keys(key)
        p.until("return /x=/.test(location.hash) && document.querySelector('.step') !== null", f"{key}: no step")
        check(name in p.run("return location.hash") and expect(), f"{key} ({name}): {p.run('return location.hash')} {p.names()}")
    p.b.keys("u")
    p.until("return !/x=/.test(location.hash)", "u takes nothing back")
    check(p.names().count("fib") == 3, "the tree is not as before")
    p.choose("Hide what is not of interest", "libc")
    p.until("return /preset/.test(location.hash)", "no preset")
    check("memcpy" not in p.names(), "libc is not hidden")
    p.click(".step button")
    p.until("return !/x=/.test(location.hash)", "a step's × takes nothing back")


# One stack for each preset: name, module and type of its frames, each with the time of its own that is at its place; what stays.
PRESETS = {
    "jvm": ([("start_thread", "libc.so.6", "native"), ("JavaMain", "libjli.so", "native"), ("JavaCalls::call_helper", "libjvm.so", "native"),
             ("Shop.serve", "Shop.java", "hotspot"), ("Java_java_io_FileInputStream_readBytes", "libjava.so", "native"), ("[JIT code] java", "", "jvm"),
             ("Java_Shop_hash", "libshop.so", "native"), ("G1ParScanThreadState::copy", "libjvm.so", "native"), ("vfs_read", "vmlinux", "kernel")],
            ["start_thread", "Shop.serve", "[JIT code] java", "Java_Shop_hash", "vfs_read"]),
    "go": ([("runtime.goexit.abi0", "shop", "go"), ("runtime.main", "shop", "go"), ("main.main", "shop", "go"), ("acme.dev/runtime.Run", "shop", "go"),
            ("internal/runtime/maps.(*Map).getWithKey", "shop", "go"), ("runtime/internal/atomic.Load", "shop", "go"), ("encoding/json.Marshal", "shop", "go"),
            ("runtime.mallocgc", "shop", "go"), ("runtime.gcBgMarkWorker.func2", "shop", "go"), ("vfs_read", "vmlinux", "kernel")],
           ["main.main", "acme.dev/runtime.Run", "encoding/json.Marshal", "vfs_read"]),
    "erlang": ([("start_thread", "libc.so.6", "native"), ("process_main", "beam.smp", "native"), ("shop:serve/2", "shop.erl", "beam"), ("lists:map/2", "beam.smp", "beam"),
                ("erts_garbage_collect", "beam.smp", "native"), ("crypto_hash", "crypto.so", "native"), ("copy_struct", "beam.debug.smp", "native"), ("vfs_read", "vmlinux", "kernel")],
               ["start_thread", "shop:serve/2", "lists:map/2", "crypto_hash", "vfs_read"]),
}
APPLY = """const done = arguments[3]; Promise.all([import("/page/tree.js"), import("/page/transform.js")]).then(([{ Tree }, { transformed }]) => {
    const [frames, id] = arguments, column = (k, first) => [first, ...frames.map((f) => f[k])], zeros = () => [0, ...frames.map(() => 0)];
    const functions = { name: column(0, "all"), module: column(1, ""), type: column(2, ""), file: column(1, "").fill("") };
    const nodes = { fn: functions.name.map((_, i) => i), parent: frames.reduce((a, _, i) => [...a, i], [0]), line: zeros(), inlined: zeros(), self: [0, ...frames.map((_, i) => i + 1)] };
    const t = transformed(new Tree(functions, nodes, { total: 0 }, [1]), [id]);
    done(Array.from(t.fn, (f, i) => [t.functions.name[f], t.self[i]]));
  }).catch((e) => done(String(e)));"""


def test_presets(p):
    """Each hides a runtime's inside, and nothing else; the time of what is hidden goes to its caller."""
    p.graph()
    offered = p.run("return [...[...document.querySelectorAll('select')].find((e) => e.title === 'Hide what is not of interest').options].map((o) => o.value)")
    for name, (frames, stays) in PRESETS.items():
        check(name in offered, f"{name} is not offered: {offered}")
        got = p.b.async_run(APPLY, frames, f"preset:{name}", None)
        wanted = [["all", 0]]
        for k, (function, _, _) in enumerate(frames):
            if function in stays:
                wanted.append([function, 0])
            wanted[-1][1] += k + 1
        check(got == wanted, f"{name}: {got}, not {wanted}")
