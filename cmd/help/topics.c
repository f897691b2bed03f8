/* SPDX-License-Identifier: Apache-2.0 */
/* Texts on what several commands and options share. */
#include "cmd/help/topics.h"

#include <stddef.h>

const struct topic topics[] = {
	{ "filters", "What is sampled. The kernel decides it for each sample, before it looks at the stack; what is\n"
		     "filtered away costs next to nothing.\n\n"
		     "  -p PID,...  -t TID,...     these processes with the children they start, or these threads\n"
		     "  --comm NAME,...            threads so named, and all threads of processes so named; * ? [a-z]\n"
		     "  --uid USER,...             what these users run\n"
		     "  -G PATH,...  --container ID,...   these control groups and those below them, these containers\n"
		     "  -C CPU,...                 these CPUs\n"
		     "  --min-process-age TIME     processes that are not younger\n"
		     "  --kernel, --no-kernel      time in the kernel alone; no kernel frames\n"
		     "  --idle                     idle CPUs too\n\n"
		     "Filters of different kinds must all let a sample pass: --uid 1000 --comm 'java*' is what user 1000\n"
		     "runs under such names. Of several values of one kind any will do; -p and -t, and -G and\n"
		     "--container, are one kind each. Process ids are the host's, also for what runs in containers.\n" },
	{ "events", "What a sample is taken on, by perf's names:\n\n"
		    "  cpu-clock, task-clock      time; the default, works everywhere\n"
		    "  page-faults (faults), minor-faults, major-faults, context-switches (cs),\n"
		    "  cpu-migrations (migrations), alignment-faults, emulation-faults     counted by the kernel\n"
		    "  cycles, ref-cycles, bus-cycles, instructions, cache-references, cache-misses, branches,\n"
		    "  branch-misses, stalled-cycles-frontend, stalled-cycles-backend      counted by the CPU\n"
		    "  L1-dcache, L1-icache, LLC, dTLB, iTLB, branch, node with -loads, -load-misses, -stores,\n"
		    "  -store-misses, -prefetches, -prefetch-misses: LLC-load-misses\n"
		    "  rHEX                       a raw event of the CPU\n"
		    "  SYSTEM:EVENT               a tracepoint of the kernel: sched:sched_switch,\n"
		    "                             syscalls:sys_enter_openat; 'perf list tracepoint' shows all\n\n"
		    "Behind a colon: u user space alone, k the kernel alone, p (pp, ppp) more precise. -F HZ asks for\n"
		    "so many samples a second, -c N for one each N events. Of a tracepoint each event is a sample unless\n"
		    "-c says less, there are no u, k and p, and -F does nothing. Virtual machines often count nothing of\n"
		    "the CPU's; 'hearth check' says which events are here.\n" },
	{ "probes",
	  "Calls of functions, as events: -e takes, once or several times,\n\n"
	  "  uprobe:FILE:FUNCTION          each call of a function of a program or library\n"
	  "  uprobe:FILE:FUNCTION+OFFSET   each passing of an instruction in it; FILE:0xADDRESS: of any\n"
	  "  uretprobe:FILE:FUNCTION       each return from it, with the stack of its caller\n"
	  "  usdt:FILE:PROVIDER:NAME       an event that the program was built with (<sys/sdt.h>)\n"
	  "  kprobe:FUNCTION[+OFFSET], kretprobe:FUNCTION      the same in the kernel\n"
	  "  fentry:FUNCTION, fexit:FUNCTION                   in the kernel, at less cost; one by one\n\n"
	  "FILE is a path, also into a container (/proc/PID/root/...), or the name of a program in PATH or of a\n"
	  "library (libc). All processes that run the file are meant, also those that start later; -p and the other\n"
	  "filters choose. FUNCTION is a name as in the file or as reports show it (std::sort), also of a debug file,\n"
	  "or a pattern: 'malloc*', 'net/http.*', 1000 functions at most. Each call is a sample unless -c N takes each\n"
	  "N-th; -F does nothing. Samples are of type events, with probe.name: hearth report FILE --by label=probe.name.\n"
	  "Behind the word :arg0 to :arg9, four at most, take arguments as labels, probe.arg0; where functions return\n"
	  ":ret takes what they return.\n"
	  "With -e cpu-clock beside it time is sampled, too.\n\n"
	  "A probe costs each call 0.5 to 3 us, and a sample as much again: malloc becomes 50 times slower.\n\n"
	  "  hearth record -e uprobe:libc:malloc -c 1000 -d 5 -o x.otlp\n"
	  "  hearth record -e 'kprobe:tcp_*connect' -e uretprobe:/usr/bin/bash:readline -d 10 -o x.otlp\n" },
	{ "waiting",
	  "Where threads wait. With --off-cpu the time that threads are off the CPUs is sampled as well:\n\n"
	  "  off_cpu     from when a thread leaves its CPU until something wakes it\n"
	  "  runnable    from then on until it has a CPU; also while another thread was given its CPU\n\n"
	  "Both are profiles of their own, in nanoseconds. With the time on the CPUs they come to the whole time of\n"
	  "each thread. A wait of --off-cpu-from and longer is told with its length. Of shorter ones each has a\n"
	  "chance as great as its part of that, and counts that much then: their sum comes out right, and many short\n"
	  "waits cost no more than few long ones. Threads that wait on are told at the end of each interval.\n\n"
	  "A sample has the stack that waits, thread.state (sleeping, blocked, stopped, preempted, woken),\n"
	  "syscall.name and wait.target: the file, the peer or the lock (futex 0x...) that it waits for. Kernel\n"
	  "threads that wait for work are left out.\n\n"
	  "With --wakers profiles of type waker tell who ended each sleep: on the stack that waited stands a frame\n"
	  "[woken by NAME], and on that the stack of the thread NAME, or of an interrupt, that woke it.\n\n"
	  "  hearth record --off-cpu -d 10 -o x.otlp; hearth report x.otlp --kind off_cpu\n"
	  "  hearth report x.otlp --kind off_cpu --by label=wait.target --hide-idle\n"
	  "  hearth record --wakers -d 10 -o x.otlp; hearth report x.otlp --kind waker --format tree\n"
	  "  hearth report x.otlp --format locks          # who waits for which lock, and who lets it go\n" },
	{ "memory",
	  "Where memory comes from. With --memory the places are sampled where pages are touched for the first time:\n"
	  "that is when a process takes them, whatever allocator it has, and in whatever language it is written. They\n"
	  "are profiles of type memory, in bytes, with whole stacks. A sample stands for --memory-every bytes; huge\n"
	  "pages count whole. Files that are mapped and pages that are copied after a fork count as well; memory that\n"
	  "an allocator uses again does not, as the process has it already.\n\n"
	  "With --heap the heaps of Go programs are read, by the samples that Go takes itself: alloc_space and\n"
	  "alloc_objects, inuse_space and inuse_objects, by stack. Nothing is changed in them. One that takes no samples\n"
	  "(runtime.MemProfileRate is 0) is named.\n\n"
	  "With -e malloc and -p PID, or a command, the calls of that process's allocator are sampled by their bytes,\n"
	  "whichever it has: malloc, calloc, realloc, operator new and the like; those of its children, too. Each call\n"
	  "then costs the process 0.5 to 1 us more. A command waits before its main until all is ready. Type malloc,\n"
	  "bytes.\n\n"
	  "  hearth record --memory -d 10 -o x.otlp; hearth report x.otlp --kind memory\n"
	  "  hearth record --heap -p 1234 -d 10 -o x.otlp; hearth report x.otlp --kind inuse_space\n"
	  "  hearth record -e malloc -p 1234 -d 5 -o x.otlp; hearth report x.otlp --kind malloc\n"
	  "  hearth record -e malloc -o x.otlp -- ./program\n" },
	{ "configuration",
	  "Each option may also stand in a YAML file, under its long name:\n\n"
	  "  freq: 99\n"
	  "  collector: [ http://collector:4318 ]\n"
	  "  error-frames: yes\n"
	  "  record:                    # for hearth record alone\n"
	  "    freq: 999\n\n"
	  "The file is that of --config, else $XDG_CONFIG_HOME/hearth.yaml (~/.config/hearth.yaml), else\n"
	  "/etc/hearth.yaml. A flag goes before a HEARTH_ variable, that before OpenTelemetry's, that before\n"
	  "the file. 'hearth check --config FILE' names what is wrong by line. A service (no terminal) reads\n"
	  "its file again on SIGHUP: verbose, quiet, report-interval, report-jitter and probabilistic count\n"
	  "at once, of others that changed it says that they count at the next start.\n" },
	{ "environment",
	  "Each option is also a variable: --report-interval is HEARTH_REPORT_INTERVAL. Flags take yes or\n"
	  "no; options that may be repeated take one value a line. An empty variable counts as unset.\n\n"
	  "OpenTelemetry's variables are known where they fit: OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS,\n"
	  "_TIMEOUT, _COMPRESSION, _PROTOCOL, _INSECURE, _CERTIFICATE, _CLIENT_CERTIFICATE, _CLIENT_KEY, and\n"
	  "the same with OTEL_EXPORTER_OTLP_PROFILES_ in front, which go first; OTEL_SERVICE_NAME and\n"
	  "OTEL_RESOURCE_ATTRIBUTES, both hearth's own and, before these, each profiled process's. Others:\n"
	  "DEBUGINFOD_URLS, HOST_PROC (--proc), NO_COLOR, http_proxy and its like, XDG_CONFIG_HOME.\n" },
	{ "units", "Times: 5, 5s, 250ms, 1.5m, 2h, 7d; a bare number is seconds. Sizes: 4096, 64K, 4MiB, 2G, in powers\n"
		   "of 1024. Lists: values with commas between them, or the option again.\n" },
	{ "exit-status",
	  "0 done, 1 failed, 2 wrong usage. 'hearth record -- COMMAND' passes on the command's status: 128 +\n"
	  "the signal that killed it, 126 when it could not be executed, 127 when it was not found.\n"
	  "Data goes to standard output, messages to standard error.\n" },
	{ "completion", "For bash, in ~/.bashrc:      source <(hearth help --completion bash)\n"
			"For zsh, in ~/.zshrc:        source <(hearth help --completion zsh)    # after compinit\n"
			"For fish, in config.fish:    hearth help --completion fish | source\n"
			"'make install' puts them where each shell looks by itself.\n" },
	{ NULL, NULL },
};
