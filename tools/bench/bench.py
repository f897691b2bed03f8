#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmarks: one line a figure, hearth's value beside its counterpart's from the same interleaved run, their ratio and the bar.

usage: bench.py BUILD [FIGURE...]        without names: all but those of LONGER, which need what nothing else does, or long

hot, cold   a 35-deep program without frame pointers against bpf_get_stack on the same program built with them; cold: it walks
            64 MB of memory between samples
cpp, go, node  80-deep C++ of many files, Go, node's own C++, likewise
depth       the price of a frame at 35, 264 and 1,000 frames
runtimes    functions of scripts: their chains beside bpf_get_stack on a C program of the same depth, hot and cold; the start of a
            program of many functions; memory of a hundred processes. BENCH_BEFORE=PATH: processes without a runtime beside that
            hearth, of before there were chains
peer        Python, PHP, Ruby, Perl, Java, Node and Erlang beside OpenTelemetry's eBPF profiler (BENCH_PEER: its program): BPF time of a
            sample, CPU time and memory of the agent, stacks that have all functions of the program
jit         frames in code that HotSpot, V8 and BEAM made, likewise; the agent beside a virtual machine that compiles 5,000 methods
programs    size of the BPF programs, the verifier's work and time
start       from the exec of `hearth record` to its first complete stack, CPUs busy
first       the first samples of new processes: complete, and under the right name
memory      resident set and kernel maps with 200 and 2,000 processes, drift; size of the stripped binary
touched     what a page fault costs more with --memory; CPU time of the agent with --heap beside a Go program that allocates
context     what a sample costs more where threads say their span, and where they do not; a trace's view over ten million samples
probed      what a call costs at which a probe is, beside a probe with an empty program; memory of the agent with all kinds
halves      what two processes cost beside one: start, memory; the channel between them at 100,000 samples a second
steady      CPU time of the agent in a window after its warm-up against `perf record -a -g`
compiling   CPU time of both beside builds of many small files, with nothing kept from earlier runs and with what the first kept
delivered   samples against the CPU time that the kernel accounts for
busy        a busy host of compilers, servers and interpreters: stacks that reach a root, and why others do not; misses in
            steady state
services    redis, nginx, node, Python and Go under load, and nothing else: misses once they are known
symbols     names of 1,000 addresses of a Rust program beside gimli's addr2line and llvm-symbolizer, time and memory; the index: size,
            time to make, to open and to ask; 10,000 addresses in a symbol table
receive_grpc  the next, over gRPC
convert     ten million samples into pprof, a picture and a page; a pprof file read and written beside `go tool pprof -proto`
record      captures at 99 Hz beside perf's: size, time to the file once it ends; memory over a long one at 9,999 Hz
report      reading a capture of ten million samples beside `go tool pprof -top`: time, memory
page        zooming a large flame graph in Chromium: time of a frame, memory; first paint, size
away        an exporter whose two collectors are gone for ten minutes: its memory, its spool, and what arrives afterwards
waits       what sampling of time off the CPUs costs a switch, beside bcc's offcputime
ship        bytes an event on the wire and in a file, samples encoded, the file sink beside a Collector's file exporter
receive     bytes that a CPU second of `hearth serve` receives beside an OpenTelemetry Collector (Go builds it), and its memory

BENCH_QUICK=1: fewer and shorter rounds. BENCH_LONG=1: memory is watched for an hour. The exit status is 0 unless something could
not be measured.
"""
import sys

import away
import busy
import context
import convert
import cpu
import halves
import jit
import measure
import memory
import page
import peer
import probed
import receive
import receive_grpc
import record
import report
import runtimes
import ship
import start
import symbols
import touched
import unwind
import waits

FIGURES = {
    "hot": unwind.hot,
    "cold": unwind.cold,
    "cpp": unwind.cpp,
    "go": unwind.go,
    "node": unwind.node,
    "depth": unwind.depth,
    "runtimes": runtimes.runtimes,
    "peer": peer.beside,
    "jit": jit.jit,
    "programs": unwind.programs,
    "start": start.start,
    "first": start.first,
    "memory": memory.memory,
    "touched": touched.touched,
    "context": context.context,
    "probed": probed.probed,
    "halves": halves.halves,
    "steady": cpu.steady,
    "compiling": cpu.compiling,
    "delivered": cpu.delivered,
    "waits": waits.waits,
    "busy": busy.busy,
    "services": busy.services,
    "symbols": symbols.symbols,
    "convert": convert.convert,
    "record": record.record,
    "report": report.report,
    "page": page.page,
    "receive": receive.receive,
    "receive_grpc": receive_grpc.receive_grpc,
    "away": away.away,
    "ship": ship.ship,
}
LONGER = ("runtimes", "peer", "jit", "touched", "context", "probed", "halves", "busy", "services", "symbols", "convert", "record", "report", "page", "receive", "receive_grpc", "away", "ship")


def main():
    names = sys.argv[2:] or [n for n in FIGURES if n not in LONGER]
    for name in names:
        if name not in FIGURES:
            measure.fail(f"no figure '{name}'; there are: {' '.join(FIGURES)}")
    host = measure.Host(sys.argv[1])
    measure.header()
    for name in names:
        FIGURES[name](host)
    return 0


if __name__ == "__main__":
    sys.exit(main())
