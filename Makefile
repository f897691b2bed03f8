# SPDX-License-Identifier: Apache-2.0
# hearth's one build file. Everything generated lands under $(BUILD).
#
#   make            build build/hearth            sudo make run ARGS='...'   install what is missing, build, profile
#   make deps       install what a build needs    sudo make test             install what tests need, too, and run the whole suite
#   make chdb       a ClickHouse for the tests over it      make packages | release   what is installed, what is published
#   make test-unit | test-arm64 | test-system | test-one-process | test-vm | truth | judge | mutants | mutation | peers | symbols-truth | bench | fuzz | fuzz-long | lint | rooms | format | install | clean
#   V=1 full commands   SAN=1 ASan + UBSan   DEBUG=1 no optimization   BUILD=dir other output folder
#   ARCH=arm64      cross build on another CPU, with gcc-aarch64-linux-gnu, over packages unpacked into $(SYSROOT)

MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.SUFFIXES:

# --- for which CPU: Debian's names; another one than this machine's is a cross build ---
MACHINE_x86_64 := amd64
MACHINE_aarch64 := arm64
HOST_ARCH := $(MACHINE_$(shell uname -m))
ARCH ?= $(HOST_ARCH)
CROSS := $(if $(filter $(HOST_ARCH),$(ARCH)),,$(ARCH))
TRIPLE_amd64 := x86_64-linux-gnu
TRIPLE_arm64 := aarch64-linux-gnu
BPF_TARGET_amd64 := x86
BPF_TARGET_arm64 := arm64
$(if $(TRIPLE_$(ARCH)),,$(error hearth is for x86_64 and aarch64, not for $(or $(ARCH),$(shell uname -m))))
SYSROOT ?= $(if $(CROSS),build-$(CROSS)-sysroot)

SAN ?= 0
DEBUG ?= 0
BUILD ?= build$(CROSS:%=-%)$(if $(filter 1,$(SAN)),-san)$(if $(filter 1,$(DEBUG)),-debug)
# Programs for the kernel are the same in builds with sanitizers: those of the plain build are taken.
BPF_BUILD ?= $(if $(filter 1,$(SAN)),build$(CROSS:%=-%),$(BUILD))
PREFIX ?= /usr/local
CLANG ?= clang
# Sanitized is built by clang alone, so that unit tests and fuzz targets share what they link.
CC := $(if $(filter default,$(origin CC)),$(if $(filter 1,$(SAN)),$(CLANG),$(if $(CROSS),$(TRIPLE_$(ARCH))-)gcc),$(CC))
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
VERSION := $(shell cat vendor/version)

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(patsubst $(BUILD)/%,%,$(2))';)

WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wformat=2 \
	-Wimplicit-fallthrough -Wvla -Wnull-dereference -Wdate-time
HARDEN_amd64 := -fcf-protection
HARDEN_arm64 := -mbranch-protection=standard
HARDEN := -fstack-protector-strong -fstack-clash-protection $(HARDEN_$(ARCH)) -fPIE
CFLAGS_ALL := -std=gnu17 -g -D_GNU_SOURCE -DHEARTH_VERSION='"$(VERSION)"' -I. -I$(BUILD) -I$(BPF_BUILD) -MMD -MP $(HARDEN)
LDFLAGS_ALL := -pie -Wl,-z,relro,-z,now -Wl,--as-needed
ifeq ($(DEBUG),1)
CFLAGS_ALL += -O0
else
CFLAGS_ALL += -O2 -ffunction-sections -fdata-sections
LDFLAGS_ALL += -Wl,--gc-sections
endif
ifeq ($(SAN),1)
CFLAGS_ALL += -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDFLAGS_ALL += -fsanitize=address,undefined
WARN := $(filter-out -Wnull-dereference,$(WARN)) -Wno-missing-field-initializers # clang's are others than gcc's
else ifneq ($(DEBUG),1)
CFLAGS_ALL += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
endif
CFLAGS_ALL += $(if $(CROSS),--sysroot=$(SYSROOT)) $(CFLAGS)
LDFLAGS_ALL += $(if $(CROSS),--sysroot=$(SYSROOT)) $(LDFLAGS)
include vendor/deps.mk

# --- layers: the top rooms of tools/rooms, an archive each, that is linked with those that its rooms may use ---
# "LAYER/ITSELF/ONE BELOW/..." a layer, from the top down; bpf/ is inside the agent's objects
LAYER_LINES := $(shell awk '/^[a-z \t]/ { for (i = 1; i <= NF; i++) { name = $$i; is_room = sub(/:$$/, "", name); sub(/\/.*/, "", name); \
	if (is_room && !((room = name) in seen)) seen[order[++n] = room]; uses[room, name] } } \
	END { for (i = 1; i <= n; i++) { line = order[i]; for (j = i; j <= n; j++) if ((order[i], order[j]) in uses) line = line "/" order[j]; \
	if (order[i] != "bpf") print line } }' tools/rooms)
LAYERS :=
define layer_line
LAYERS += $(1)
below_$(1) := $(filter-out bpf,$(2))
endef
$(foreach line,$(LAYER_LINES),$(eval $(call layer_line,$(firstword $(subst /, ,$(line))),$(wordlist 2,99,$(subst /, ,$(line))))))
archives = $(foreach l,$(below_$(1)),$(BUILD)/lib/$(l).a)

# A file called after another CPU is not built.
OTHER_CPUS := $(filter-out $(if $(filter amd64,$(ARCH)),x86_64,$(ARCH)),x86_64 arm64)
SRC := $(filter-out $(OTHER_CPUS:%=\%_%.c),$(sort $(shell find $(LAYERS) -name '*.c')))
src = $(filter $(1)/%,$(SRC))
obj = $(patsubst %.c,$(BUILD)/%.o,$(call src,$(1)))

PROTO_SRC := $(sort $(shell find proto -name '*.proto'))
PROTO_OBJ := $(patsubst %.proto,$(BUILD)/%.pb.o,$(PROTO_SRC))
BPF_SRC := $(sort $(shell find bpf -name '*.bpf.c'))
BPF_SKEL := $(patsubst bpf/%.bpf.c,$(BPF_BUILD)/bpf/%.skel.h,$(BPF_SRC))

.PHONY: all
all: $(BUILD)/hearth

$(BUILD)/hearth: $(call archives,cmd)
	$(call say,LD,$@) $(CC) $(LDFLAGS_ALL) -o $@ -Wl,--whole-archive $(BUILD)/lib/cmd.a -Wl,--no-whole-archive $(wordlist 2,99,$^) $(LIBS)

define layer
$(BUILD)/lib/$(1).a: $(call obj,$(1)) $(if $(filter proto,$(1)),$(PROTO_OBJ))
	$$(call say,AR,$$@) mkdir -p $$(@D) && rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach l,$(LAYERS),$(eval $(call layer,$(l))))

$(BUILD)/%.o: %.c | $(BUILD)/.deps
	$(call say,CC,$@) mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) $(WARN) $(INCLUDES) -c -o $@ $<

# --- nanopb: our schema -> tags and descriptors (the codec is the only user) ---
$(BUILD)/proto/%.pb.c $(BUILD)/proto/%.pb.h &: proto/%.proto | $(BUILD)/.deps
	$(call say,NANOPB,$@) mkdir -p $(@D) && PATH="/usr/bin:$$PATH" protoc -I$(<D) \
		--plugin=protoc-gen-nanopb=$(NANOPB_PLUGIN) --nanopb_out=$(@D) $<

$(BUILD)/%.pb.o: $(BUILD)/%.pb.c
	$(call say,CC,$@) $(CC) $(CFLAGS_ALL) $(INCLUDES) -c -o $@ $<

$(call obj,proto) $(call obj,backend) $(PROTO_OBJ): | $(patsubst %.o,%.h,$(PROTO_OBJ))

# What `hearth bench` samples is walked by frame pointers, too.
$(filter %/bench_load.o,$(call obj,cmd)): CFLAGS_ALL += -fno-omit-frame-pointer -fno-optimize-sibling-calls

# Text files that base/embed.h puts into objects: any of them is made new with any of these.
EMBEDDED := $(shell find $(LAYERS) -name '*.js' -o -name '*.css' -o -name '*.html')
$(patsubst %.c,$(BUILD)/%.o,$(shell grep -rl --include='*.c' '"base/embed.h"' $(LAYERS))): $(EMBEDDED)

# --- BPF: one object a program file, embedded as a skeleton ---
BPF_CFLAGS := -std=gnu11 -g -O2 -target bpf -D__TARGET_ARCH_$(BPF_TARGET_$(ARCH)) -I. $(BPF_INCLUDES) -Wall -Wextra -Wno-unused-parameter -Werror -MMD -MP
$(BPF_BUILD)/bpf/%.bpf.o: bpf/%.bpf.c | $(BUILD)/.deps
	$(call say,BPF,$@) mkdir -p $(@D) && $(CLANG) $(BPF_CFLAGS) -MT $@ -MF $(@:.o=.d) -c -o $@ $<

$(BPF_BUILD)/bpf/%.skel.h: $(BPF_BUILD)/bpf/%.bpf.o
	$(call say,SKEL,$@) $(BPFTOOL) gen skeleton $< name $(notdir $*)_bpf > $@

$(call obj,agent) $(patsubst %.c,$(BUILD)/%.o,$(shell find tests/unit/agent -name '*.c')): | $(BPF_SKEL)

# --- what it takes ---
.PHONY: deps test-deps
deps:
	$(Q)tools/deps.sh
test-deps:
	$(Q)tools/deps.sh --test

# A build without its libraries should say so in one line, not in pages of missing headers.
$(BUILD)/.deps: vendor/packages.txt tools/deps.sh
	$(Q)tools/deps.sh --check $(CROSS)
	$(if $(CROSS),$(call say,SYSROOT,$(SYSROOT)) tests/vm/sysroot.sh $(CROSS) $(SYSROOT))
	$(Q)mkdir -p $(@D) && touch $@

# --- running ---
.PHONY: run
run: deps
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) all
	$(Q)exec $(BUILD)/hearth $(ARGS)

# --- tests ---
# Tests that hold x86-64's code, registers or rows, or build programs for this machine; and what qemu-user
# cannot do (helper processes behind seccomp filters, openat2). What stands above the agent knows no CPU.
UNIT_LAYERS := $(if $(CROSS),base agent,$(LAYERS))
UNIT_ONLY_amd64 := $(patsubst %,tests/unit/agent/\%test_%.c,late_walk stacks rows code bounds entry rows_quick rows_files go unwind blocks dense \
	beam beam_rows code_service dotnet gdb_jit hotspot pcre tagged v8_reader debug_files $(if $(CROSS),elf_helper elf_service index_helper indexes interval perf_map proc_maps))
UNIT_SRC := $(filter-out $(OTHER_CPUS:%=\%_%.c) $(if $(filter amd64,$(ARCH)),,$(UNIT_ONLY_amd64)), \
	$(sort $(shell find $(UNIT_LAYERS:%=tests/unit/%) -name 'test_*.c')))
UNIT_BIN := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(UNIT_SRC))
unit_layer = $(firstword $(subst /, ,$(patsubst $(BUILD)/unit/%,%,$(1))))

# Not optimized, which takes longer than running them.
$(BUILD)/tests/unit/%.o: CFLAGS_ALL += -DTEST_DATA='"tests"' -O0 -U_FORTIFY_SOURCE
# Want of memory: tests/unit/failing_memory.h.
$(BUILD)/unit/%/test_no_memory: LDFLAGS_ALL += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray,--wrap=strdup,--wrap=strndup,--wrap=free
# Linked by lld where it is: they are hundreds, and it takes half the time. The counters of test_probe_ways lie in a page that lld maps twice, so
# that the kernel raises them twice.
LLD := $(if $(CROSS),,$(if $(shell command -v ld.lld),-fuse-ld=lld))
$(filter-out %/test_probe_ways,$(UNIT_BIN)): LDFLAGS_ALL += $(LLD)
.SECONDEXPANSION:
$(BUILD)/unit/%: $(BUILD)/tests/unit/%.o $$(call archives,$$(call unit_layer,$$@))
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS) -lcmocka

.PHONY: unit-bins test-unit test-arm64 test-system test-vm truth symbols-truth test lint format bench fuzz shop
unit-bins: $(UNIT_BIN)

test-unit: unit-bins
	$(Q)HEARTH_TEST_RUNNER="$(if $(CROSS),qemu-$(firstword $(subst -, ,$(TRIPLE_$(ARCH))))-static -L $(abspath $(SYSROOT)))" tests/run-unit.sh $(BUILD) $(UNIT_BIN)

# The same for arm64 by qemu-user, but for what needs a kernel of that CPU (test-vm has it).
test-arm64:
	$(Q)tools/deps.sh --arm64
	$(Q)$(MAKE) --no-print-directory ARCH=arm64 BUILD=$(BUILD)-arm64 test-unit

test-system: all judge-bin
	$(Q)tests/run-system.sh $(BUILD)

# What runs as two processes by default, as one.
.PHONY: test-one-process
test-one-process: all
	$(Q)tests/run-system.sh $(BUILD) --one-process

# KERNELS: those of them that are to be tried
test-vm: all test-deps
	$(if $(if $(KERNELS),$(filter %-arm64,$(KERNELS)),1),$(Q)tools/deps.sh --arm64 && $(MAKE) --no-print-directory ARCH=arm64 BUILD=$(BUILD)-arm64 all)
	$(Q)tests/run-vm.sh $(BUILD) $(KERNELS)

truth: all
	$(Q)tests/truth/matrix.sh --all --table $(BUILD)/hearth $(BUILD)/truth/matrix-all $(BUILD)/truth/run

# Names, files and lines of more than 100,000 addresses against other tools, and every name of the largest programs here.
symbols-truth: all $(BUILD)/symbols/demangle
	$(Q)tests/symbols/names.sh $(BUILD)
	$(Q)tests/symbols/run.sh $(BUILD) long

$(BUILD)/symbols/demangle: $(BUILD)/tests/symbols/demangle.o $(call archives,symbols)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

# All but the program.
.PHONY: libs
libs: $(LAYERS:%=$(BUILD)/lib/%.a)

test:
	$(Q)tests/run.sh

lint:
	$(Q)tools/lint.sh

# Who calls whom, against tools/rooms.
.PHONY: rooms
rooms: $(call archives,cmd)
	$(Q)tools/check-rooms --build $(BUILD)

format:
	$(Q)$$(command -v clang-format-14 || echo clang-format) -i $$(git ls-files '*.c' '*.h' '*.def')

bench: all $(addprefix $(BUILD)/bench/,names store capture encode pack channel fpwalk)
	$(Q)tools/bench/run.sh $(BUILD) $(FIGURES)

$(BUILD)/bench/capture: $(BUILD)/tools/bench/capture.o $(call archives,proto)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$(BUILD)/bench/encode: $(BUILD)/tools/bench/encode.o $(call archives,proto)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$(BUILD)/bench/pack: $(BUILD)/tools/bench/pack.o $(call archives,base)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$(BUILD)/bench/channel: $(BUILD)/tools/bench/channel.o $(call archives,cmd)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$(BUILD)/bench/store: $(BUILD)/tools/bench/store.o $(call archives,backend)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$(BUILD)/bench/names: $(BUILD)/tools/bench/names.o $(call archives,symbols)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$(BUILD)/bench/fpwalk: $(BUILD)/tools/bench/fpwalk.o $(call archives,agent)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

# --- the judge of the stack walk: a program of its own over hearth's archives ---
JUDGE_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/judge/*.c))
$(BUILD)/judge/judge: $(JUDGE_OBJ) $(call archives,agent)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

# The rows of V8's code alone, over single steps of node.
$(BUILD)/v8/steps: $(BUILD)/tests/v8/steps.o $(BUILD)/tests/v8/node.o $(call archives,agent)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

# The reader of BEAM's code alone, over random stops of Erlang.
$(BUILD)/beam/stops: $(BUILD)/tests/beam/stops.o $(call archives,agent)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

# Readers of made code and rows alone, over random stops of any such program.
$(BUILD)/code/stops: $(BUILD)/tests/code/stops.o $(call archives,agent)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

# Peers from language registries: what hearth writes, in the tools that read it.
.PHONY: peers
shop: all
	$(Q)tests/shop/shop.sh $(BUILD)

peers: all
	$(Q)tests/peers/formats.sh $(BUILD)

# A real ClickHouse for the tests over it: the engine inside npm's chdb, 550 MB unpacked. Without it they are skipped.
.PHONY: chdb
chdb: $(BUILD)/chdb/node_modules/chdb
$(BUILD)/chdb/node_modules/chdb:
	$(call say,NPM,chdb) mkdir -p $(BUILD)/chdb && npm install --prefix $(BUILD)/chdb --no-audit --no-fund --silent chdb@3.4.0

.PHONY: judge-bin judge
judge-bin: $(if $(filter amd64,$(ARCH)),$(BUILD)/judge/judge) # it follows x86-64's instructions

judge: judge-bin
	$(Q)tests/judge/run.sh $(BUILD) long

# Stacks of scripts, of Java, of node and of Erlang: each interpreter, JDK, node and Erlang that is here, each way of calling.
# PYTHONS, RUBIES, JDKS, PHPS, NODES, ERLS: further ones
.PHONY: runtimes
runtimes: all $(BUILD)/v8/steps $(BUILD)/beam/stops $(BUILD)/code/stops
	$(Q)status=0; for part in script/matrix script/matrix-ruby script/matrix-php script/matrix-lua script/java script/node script/gdb-jit script/dotnet v8/matrix beam/matrix code/matrix; do \
		tests/$$part.sh $(BUILD) || status=1; done; exit $$status

# Programs that say what they did, and what the profile says: waits, memory, heaps, allocations, calls; a table.
.PHONY: known
known: all
	$(Q)HEARTH_SHOW=^known: HEARTH_REFUSED_CALLS=kill tests/run-system.sh $(BUILD) off-cpu wakers memory heap probes

# Either half of hearth is killed, again and again, under load.   KILLS: how often each
.PHONY: kills
kills: all
	$(Q)tests/truth/build.sh $(BUILD)/truth && tests/halves/kills.sh $(BUILD) $(KILLS)

# Power cuts at random moments of a store.   CUTS: how many; REQUESTS: that are stored meanwhile
.PHONY: power
power: all
	$(Q)tests/power/power.sh $(BUILD) $(CUTS) $(REQUESTS)

# Clients of a server that want too much, five minutes each.   SECONDS; KINDS: those of them
.PHONY: crowd
crowd: all
	$(Q)tests/hostile/crowd.sh $(BUILD) $(or $(SECONDS),300) $(KINDS)

# Attacks on HTTP/2 frame by frame; and sessions that are changed at random, for SECONDS; with SAN=1 on the sanitized build.   OPTIONS: of
# tests/hostile/h2_attacks.py, as --seed N
.PHONY: h2
h2: all
	$(Q)tests/hostile/h2.sh $(BUILD) $(or $(SECONDS),120) $(OPTIONS)

# Programs that cost whoever profiles them what they can, half a minute each.   KINDS: those of them
.PHONY: neighbours
neighbours: all
	$(Q)tests/truth/build.sh $(BUILD)/truth && tests/hostile/neighbours.sh $(BUILD) 30 $(KINDS)

# A store that an older hearth wrote, in this one.   BEFORE: that one's program
.PHONY: store-before
store-before: all
	$(Q)tests/truth/build.sh $(BUILD)/truth && tests/halves/before.sh $(BUILD) $(BEFORE)

# Tests that must fail: what handles a case is taken out, one after another. A quarter of an hour.   MUTANTS: those of them to try
.PHONY: mutants
mutants: all
	$(Q)tests/mutants/run.sh $(BUILD) $(MUTANTS)

# Bugs at random lines, which a test should notice, in a copy of the tree. Hours.   MUTATION: options of tests/mutation/run.py
.PHONY: mutation
mutation:
	$(Q)tests/mutation/run.py $(MUTATION)

# --- fuzzing: clang's libFuzzer over the sanitized build ---
FUZZ_SECONDS ?= 60
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

$(BUILD)/fuzz/%: $(BUILD)/tests/fuzz/%.o $(call archives,cmd)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) $(LLD) -fsanitize=fuzzer -o $@ $^ $(LIBS)

.PHONY: fuzz-here
fuzz-here: $(FUZZ_BIN)
	$(Q)tests/run-fuzz.sh $(BUILD) $(FUZZ_SECONDS) $(FUZZ_BIN)
fuzz:
	$(Q)$(MAKE) --no-print-directory SAN=1 fuzz-here

# The same over inputs that are kept from run to run, outside of the tree.   CORPUS: their folder
.PHONY: fuzz-long
fuzz-long:
	$(Q)test -n "$(CORPUS)" || { echo "make fuzz-long CORPUS=FOLDER FUZZ_SECONDS=SECONDS: of each target"; exit 2; }
	$(Q)FUZZ_CORPUS="$(CORPUS)" $(MAKE) --no-print-directory fuzz

# --- installing ---
.PHONY: install clean
# Another CPU's program is run by qemu-user, to write its manual and completions.
RUN := $(if $(CROSS),qemu-$(firstword $(subst -, ,$(TRIPLE_$(ARCH))))-static -L $(abspath $(SYSROOT)))
install: all
	install -Dm755 -s --strip-program=$(if $(CROSS),$(TRIPLE_$(ARCH))-)strip $(BUILD)/hearth $(DESTDIR)$(PREFIX)/bin/hearth
	mkdir -p $(DESTDIR)$(PREFIX)/share/man/man1
	$(RUN) $(BUILD)/hearth help --man > $(DESTDIR)$(PREFIX)/share/man/man1/hearth.1
	mkdir -p $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(RUN) $(BUILD)/hearth help --completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/hearth
	$(RUN) $(BUILD)/hearth help --completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_hearth
	$(RUN) $(BUILD)/hearth help --completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/hearth.fish

# --- packages: for Debian of the suite that this is; a folder with all libraries; an RPM and an image of it ---
.PHONY: deb bundle rpm oci appimage packages test-packages manifests release
deb: all
	$(Q)tools/package/deb.sh $(BUILD) $(BUILD)/package
bundle: all
	$(Q)tools/package/bundle.sh $(BUILD) $(BUILD)/package/bundle $(ARCH) $(SYSROOT)
rpm: bundle
	$(Q)tools/package/rpm.sh $(BUILD)/package/bundle $(BUILD)/package $(ARCH)
# MORE: bundles of other CPUs for the same image, as arm64=build-arm64/package/bundle
oci: bundle
	$(Q)rm -rf $(BUILD)/package/image && tools/package/image.py $(VERSION) $(BUILD)/package/image $(ARCH)=$(BUILD)/package/bundle $(MORE)
# One executable file of the bundle, which shows captures: needs squashfs-tools and libsquashfuse-dev.
appimage: bundle
	$(Q)tools/package/appimage.sh $(BUILD)/package/bundle $(BUILD)/package $(ARCH) $(SYSROOT)
packages: deb rpm oci appimage

# Installs them where hearth is not: a fresh Debian, an empty root, docker. By hand: it fetches a Debian.   SUITE: bookworm
test-packages: packages
	$(Q)tests/packages/run.sh $(BUILD) $(SUITE)

# Manifests and chart: rendered, and against the schema of a real API server where there is one (APISERVER: a folder with it).
manifests:
	$(Q)tests/deploy/manifests.sh $(BUILD) $(APISERVER)

# All that is published, into $(BUILD)/release: packages, bundles, image, chart, manifests, what they are made of, and sums; all are tried.
# RELEASE_ARCHES: amd64 arm64
release: all
	$(Q)tools/package/release.sh $(BUILD) $(RELEASE_ARCHES)

clean:
	rm -rf build build-san build-debug build-san-debug build-arm64*

-include $(shell find $(BUILD) $(BPF_BUILD)/bpf -type f -name '*.d' 2>/dev/null | sort -u)
