/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table. The first row that fits counts, so what one command says stands before what all say. Words that hearth has are
 * not here, but for letters that mean something else to another command. A test parses each command line in an answer.
 */
#include "cmd/options/foreign.h"

#include <string.h>

#include "base/cleanup.h"
#include "cmd/options/command.h"

#define COMMAND(words, answer)                        \
	{                                             \
		FOREIGN_COMMAND, 0, (words), (answer) \
	}
#define OPTION(commands, words, answer)                       \
	{                                                     \
		FOREIGN_OPTION, (commands), (words), (answer) \
	}
#define FORMAT(commands, words, answer)                       \
	{                                                     \
		FOREIGN_FORMAT, (commands), (words), (answer) \
	}

#define ON_READ	   (ON_REPORT | ON_DIFF | ON_VIEW | ON_CONVERT)
#define ON_SERVER  (ON_RUN | ON_SERVE | ON_VIEW)
#define ON_SEND	   (ON_RUN | ON_SERVE)
#define NOT_NEEDED "; leave it out"

static const struct foreign table[] = {
	/* --- perf's commands --- */
	COMMAND("script",
		"'hearth report FILE --format print' prints every sample, and 'hearth convert FILE x.perf.txt' writes "
		"perf script's text"),
	COMMAND("annotate", "'hearth report FILE --format lines' shows what each source line takes"),
	COMMAND("stat",
		"hearth samples and does not count; 'hearth record -e instructions -- COMMAND' shows where they are spent, "
		"and perf stat counts them"),
	COMMAND("list", "'hearth help events' names the events, and 'hearth check' says which of them this machine has"),
	COMMAND("sched lock offcpu offcputime wakeuptime",
		"'hearth record --off-cpu -d 10' records where threads wait, and for how long"),
	COMMAND("trace strace", "'hearth record -e raw_syscalls:sys_enter -d 10' records where system calls are made"),
	COMMAND("mem c2c", "hearth does not sample single accesses to memory; 'hearth record -e cache-misses -d 10' records "
			   "where caches miss"),
	COMMAND("kmem", "'hearth record -e kmem:kmalloc -d 10' records where the kernel allocates"),
	COMMAND("probe ftrace uprobe kprobe",
		"'hearth record -e uprobe:FILE:FUNCTION' records calls of a function; 'hearth help probes' has the others"),
	COMMAND("timechart", "'hearth report FILE --format timeline' shows who was active, and when"),
	COMMAND("archive inject buildid-cache", "a recording holds its names already; nothing has to be added to it"),
	COMMAND("buildid-list evlist",
		"'hearth report FILE --format modules' lists files, build ids and where names are from"),
	COMMAND("flamegraph flame flame-graph",
		"'hearth record -d 10 -o x.svg' draws the machine, and 'hearth convert FILE x.svg' "
		"draws a recording (x.html: as a page)"),
	/* --- other profilers' --- */
	COMMAND("dump snapshot traces",
		"hearth samples and stops no process; 'hearth record -p PID -d 1 -o x.folded' writes its "
		"stacks, one a line"),
	COMMAND("start begin profile collect attach exec launch",
		"'hearth record -d 10 -o x.otlp' records the machine, with -p PID a process; 'hearth record -- COMMAND' a "
		"command"),
	COMMAND("stop", "a recording ends at Ctrl-C, or after a time: 'hearth record -d 10'"),
	COMMAND("status live monitor watch htop", "'hearth top' shows what runs now"),
	COMMAND("load open show inspect browse web ui gui",
		"'hearth view FILE' shows a recording in the browser, 'hearth report FILE' on the terminal"),
	COMMAND("import export",
		"'hearth convert FILE x.otlp' reads and writes all formats: OTLP, pprof, perf.data, speedscope, ..."),
	COMMAND("pprof",
		"'hearth convert FILE x.pb.gz' writes what go tool pprof reads, which can also ask a running hearth: go "
		"tool pprof http://127.0.0.1:4318"),
	COMMAND("server server-start receive receiver backend collector", "'hearth serve' is the receiver with the page"),
	COMMAND("agent daemon", "'hearth run' is the agent; with --collector URL it sends to a collector"),
	COMMAND("compare", "'hearth diff OLD NEW' shows what changed"),
	COMMAND("addr2line symbolize symbolizer", "'hearth symbols resolve FILE 1234' names an address"),
	COMMAND("topics", "'hearth help topics' lists them"),
	COMMAND("doctor features setup", "'hearth check' says what this machine allows"),

	/* --- options: what is sampled --- */
	OPTION(ON_AGENT, "--call-graph --dwarf --fp --cstack --native -n --unwind",
	       "stacks are always walked, also through code without frame pointers" NOT_NEEDED),
	OPTION(ON_AGENT, "--frequency --rate -r --hz --sample-rate --samples-per-second",
	       "-F HZ says how many samples a second are taken"),
	OPTION(ON_AGENT, "--interval",
	       "-F HZ says how many samples a second are taken, -c how many nanoseconds lie between them"),
	OPTION(ON_AGENT, "--input", "a recording is read by 'hearth report FILE'"),
	OPTION(ON_AGENT, "-i",
	       "perf's -i is --no-inherit, py-spy's is --idle, and async-profiler's interval is -c NANOSECONDS"),
	OPTION(ON_AGENT, "--time --timeout --seconds", "-d TIME says how long to go on: 10, 1.5m"),
	OPTION(ON_AGENT, "-D --initial-delay", "--delay TIME begins to sample later"),
	OPTION(ON_AGENT, "--subprocesses --inherit", "children are followed unless --no-inherit is given" NOT_NEEDED),
	OPTION(ON_AGENT, "--nonblocking --no-block", "hearth never stops a process" NOT_NEEDED),
	OPTION(ON_AGENT, "--system-wide", "all CPUs are sampled; with a command -a says so"),
	OPTION(ON_AGENT, "-u --user", "--uid USER samples what a user runs, --no-kernel leaves the kernel's frames out"),
	OPTION(ON_AGENT, "--all-user --user-callchains", "--no-kernel leaves the kernel's frames out"),
	OPTION(ON_AGENT, "--all-kernel --kernel-callchains", "--kernel samples time in the kernel alone"),
	OPTION(ON_AGENT, "--name --process --process-name", "--comm NAME samples processes and threads by name"),
	OPTION(ON_AGENT, "--filter --exclude-perf --exclude", "'hearth help filters' has what can be filtered"),
	OPTION(ON_AGENT, "-m --mmap-pages --buffer", "--ring-bytes SIZE sets the buffer between kernel and hearth"),
	OPTION(ON_AGENT, "-b -j --branch-any --branch-filter",
	       "hearth does not record branches; stacks need none" NOT_NEEDED),
	OPTION(ON_AGENT, "-N -B --no-buildid --no-buildid-cache --buildid-all",
	       "names are found while it records, and nothing is kept for later" NOT_NEEDED),
	OPTION(ON_AGENT, "-T -R -s -P -W --timestamp --raw-samples --stat --period --data --weight --sample-cpu --threads",
	       "each sample has its time, CPU, thread and weight" NOT_NEEDED),
	OPTION(ON_AGENT, "--switch-output --overwrite --max-size",
	       "'hearth run' keeps the last days in a store of a bounded size"),
	OPTION(ON_AGENT, "-z --compression-level", "-o x.otlp.zst writes the recording packed"),
	OPTION(ON_AGENT, "--offcpu --wall --lock --off-cpu-thresh --off-cpu-threshold",
	       "--off-cpu samples waiting, too, for locks as for all else; --off-cpu-from TIME says from which length on "
	       "all waits are told; with --wakers 'hearth report FILE --format locks' has who let a lock go"),
	OPTION(ON_AGENT, "--alloc --mem",
	       "--memory samples where memory is first touched, --heap reads the heaps of Go programs, -e malloc -p PID "
	       "samples "
	       "the allocations of one process, -e malloc -- COMMAND those of a command"),
	OPTION(ON_AGENT, "--tracers --interpreters", "--runtimes NAME,... says whose functions are named; all are"),
	OPTION(ON_AGENT, "--probabilistic-threshold --probabilistic-interval",
	       "--probabilistic PERCENT/INTERVAL samples in a part of the intervals"),
	OPTION(ON_AGENT, "--gil --locals --function --nolineno",
	       "hearth does not look into an interpreter's state" NOT_NEEDED),
	OPTION(ON_RECORD, "-f --file --outfile --output-file --output-format",
	       "-o FILE says where to write, and the end of its name in which format: x.otlp, x.svg, x.html, x.folded, "
	       "x.pb.gz"),
	OPTION(ON_RECORD | ON_CONVERT, "--svg --html --flamegraph --flame-graph",
	       "-o x.svg or -o x.html draws a flame graph"),
	OPTION(ON_RECORD, "--save-only --no-open", "a recording is opened with --open alone" NOT_NEEDED),
	OPTION(ON_TOP, "--sort", "keys sort the live table: s by self, t by total, o by overall, n by name"),
	OPTION(ON_TOP, "-o --output --file", "'hearth record -d 10 -o x.otlp' writes a file"),

	/* --- options: reading a recording --- */
	OPTION(ON_READ, "-i --input", "the file stands alone: 'hearth report FILE'"),
	OPTION(ON_REPORT, "--sort -s",
	       "rows come by self time; --by comm (process, thread, cpu) makes rows of each, and --format lines "
	       "of source lines"),
	OPTION(ON_REPORT, "-g --call-graph", "'hearth report FILE --format tree' shows the call tree"),
	OPTION(ON_REPORT, "--stdio --tui --gtk --text",
	       "the table is always text, and 'hearth view FILE' shows a page" NOT_NEEDED),
	OPTION(ON_REPORT, "--children --no-children",
	       "the table has both: SELF% is without children, TOTAL% with them" NOT_NEEDED),
	OPTION(ON_REPORT, "-n --show-nr-samples --fields --header --header-only --show-total-period",
	       "--format csv has all columns, and --format print everything that was recorded"),
	OPTION(ON_REPORT, "--percent-limit", "--min PERCENT leaves lighter branches out, --rows N lighter rows"),
	OPTION(ON_REPORT, "--limit --head --max-rows", "--rows N says how many rows there are"),
	OPTION(ON_REPORT | ON_DIFF,
	       "-S -d --symbols --symbol --symbol-filter --dsos --dso --module --grep --filter --include",
	       "--focus RE keeps stacks with such a function or module, and --ignore RE leaves them out"),
	OPTION(ON_REPORT, "-G --inverted --reverse",
	       "--invert shows the functions that take the time first, then who calls them"),
	OPTION(ON_REPORT, "--max-stack --max-depth", "--depth N shows so many levels of the tree"),
	OPTION(ON_REPORT | ON_DIFF, "-p --pid", "--process PID keeps one process"),
	OPTION(ON_REPORT | ON_DIFF, "-t --tid", "--thread TID keeps one thread"),
	OPTION(ON_REPORT | ON_DIFF, "-c --comms", "--comm RE keeps what is so named"),
	OPTION(ON_REPORT, "-T --threads", "'hearth report FILE --by thread' shows threads apart"),
	OPTION(ON_READ, "-k --vmlinux --kallsyms --symfs --buildid-dir",
	       "the recording holds its names, the kernel's too" NOT_NEEDED),
	OPTION(ON_READ, "-f --force", "nobody asks whose the file is" NOT_NEEDED),
	OPTION(ON_REPORT, "-o --output",
	       "'hearth convert FILE x.svg' writes other formats; the table goes to standard output"),
	OPTION(ON_REPORT, "--svg --html --flamegraph --flame-graph",
	       "'hearth convert FILE x.svg' draws a flame graph, x.html as a page"),
	OPTION(ON_REPORT, "--json --csv --tree --folded --collapsed --top",
	       "--format json says so; there are csv, tree, folded, top too"),
	OPTION(ON_CONVERT, "-o --output", "the second file is what is written: 'hearth convert IN x.pb.gz'"),

	/* --- options: servers and senders --- */
	OPTION(ON_SERVE, "--port -P -p --listen -l --host --bind --address --addr",
	       "--http-address HOST:PORT says where the page and OTLP/HTTP are, --grpc-address HOST:PORT where OTLP/gRPC "
	       "is"),
	OPTION(ON_SERVER, "--port -P --listen -l --host --bind --address --addr",
	       "--http-address HOST:PORT says where the page is"),
	OPTION(ON_SEND, "--url --endpoint --server --remote --exporter --otlp --otlp-endpoint --collection-agent",
	       "--collector URL sends to an OTLP receiver"),
	OPTION(ON_SEND, "--disable-tls", "an address with http:// or grpc:// is without TLS, https:// or grpcs:// with it"),
	OPTION(ON_AGENT, "--reporter-interval", "--report-interval TIME says how often profiles are handed on"),
	OPTION(ON_AGENT, "--monitor-interval --clock-sync-interval", "hearth does it each second" NOT_NEEDED),
	OPTION(ON_AGENT, "--map-scale-factor", "--map-scale N makes the kernel's tables larger"),
	OPTION(ON_AGENT, "--no-kernel-version-check", "--no-version-check goes on all the same"),
	OPTION(ON_AGENT, "--send-error-frames", "--error-frames marks where a stack is not complete"),
	OPTION(ON_AGENT, "--send-idle-frames", "--idle samples idle CPUs, too"),
	OPTION(ON_AGENT, "--probe-link", "-e kprobe:FUNCTION, -e uprobe:FILE:FUNCTION; 'hearth help probes' has the others"),
	OPTION(ON_AGENT, "--pin-cpu-ids", "-C CPU,... samples these CPUs alone"),
	OPTION(ON_AGENT, "--filter-min-process-age --frame-cache-size",
	       "there is nothing to set: processes of any age are sampled, and tables grow as they must" NOT_NEEDED),
	OPTION(ON_RUN | ON_RECORD, "--reporter-jitter", "--report-jitter PART says how far intervals are apart by chance"),
	OPTION(ON_AGENT, "--bpf-verifier-log-level", "--bpf-log-level N says so"),
	OPTION(ON_SEND | ON_STORE, "--data --data-dir --data-path --storage --db --database --dir",
	       "--store FOLDER keeps profiles there"),
	OPTION(ON_SEND | ON_STORE, "--retention --max-age --ttl", "--keep-age TIME says how long profiles are kept"),

	/* --- options: everywhere --- */
	OPTION(ON_ALL, "-V --version --copyright", "'hearth version' prints the version"),
	OPTION(ON_ALL, "--debug --log-level --loglevel", "--verbose (-v) says more, --quiet (-q) less"),
	OPTION(ON_ALL, "--config-file --config-path", "--config FILE reads settings"),
	OPTION(ON_REPORT | ON_DIFF, "--no-color --no-colour --nocolor", "--color never turns colours off"),
	OPTION(ON_ALL, "--no-color --no-colour --nocolor", "NO_COLOR=1 in the environment turns colours off"),

	/* --- formats --- */
	FORMAT(ON_REPORT, "flame flamegraph flame-graph picture svg html",
	       "'hearth convert FILE x.svg' draws a flame graph, x.html as a page"),
	FORMAT(ON_REPORT, "pprof speedscope firefox gecko perf-script perf chrome otlp otlp.json",
	       "'hearth convert FILE x.pb.gz' writes it; 'hearth help convert' has the ends of names of all formats"),
	FORMAT(ON_CONVERT, "flame flamegraph flame-graph picture", "svg draws a flame graph, html a page with one"),
	FORMAT(ON_REPORT, "raw collapsed stacks", "folded is a line for each stack"),
	FORMAT(ON_REPORT, "text txt table flat functions", "top is the table of functions"),
	FORMAT(ON_REPORT, "calltree callgraph call-graph call-tree graph", "tree is the call tree"),
	FORMAT(ON_REPORT, "script samples", "print is everything that was recorded"),
	FORMAT(ON_CONVERT, "raw collapsed stacks", "folded is a line for each stack"),
	FORMAT(ON_CONVERT, "json", "speedscope, firefox and otlp.json are the kinds of JSON"),
	FORMAT(ON_CONVERT, "perf script perf.data", "perf-script is the text of perf script"),
	FORMAT(ON_CONVERT, "gecko mozilla", "firefox is what the Firefox Profiler reads"),
	FORMAT(ON_CONVERT, "pb proto protobuf pb.gz", "pprof is what go tool pprof reads, otlp is OTLP"),
	FORMAT(ON_CONVERT, "chrometrace chrome jfr callgrind trace",
	       "hearth does not write it; speedscope and firefox have times too"),
};

/* Whether @word is among @words. */
static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word), n;

	for (const char *p = words; *p; p += n + (p[n] == ' ')) {
		n = strcspn(p, " ");
		if (n == len && !memcmp(p, word, n))
			return true;
	}
	return false;
}

const char *foreign_answer(enum foreign_kind kind, unsigned commands, const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].kind == kind && (kind == FOREIGN_COMMAND || table[i].commands & commands) &&
		    has_word(table[i].words, word))
			return table[i].answer;
	return NULL;
}

const struct foreign *foreign_table(size_t *count_ret)
{
	*count_ret = ARRAY_LEN(table);
	return table;
}
