# SPDX-License-Identifier: Apache-2.0
# hearth's one build file. Everything generated lands under $(BUILD).
#
#   make            build build/hearth            sudo make run ARGS='...'   install what is missing, build, profile
#   make deps       install missing packages      sudo make test             the whole test suite
#   make chdb       a ClickHouse for the tests over it
#   make test-unit | test-arm64 | test-system | test-vm | truth | judge | mutants | peers | symbols-truth | bench | fuzz | lint | format | install | clean
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
PREFIX ?= /usr/local
CLANG ?= clang
CC := $(if $(filter default,$(origin CC)),$(if $(CROSS),$(TRIPLE_$(ARCH))-)gcc,$(CC))
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
VERSION := $(shell cat vendor/version)

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(patsubst $(BUILD)/%,%,$(2))';)

WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wformat=2 \
	-Wimplicit-fallthrough -Wvla -Wnull-dereference -Wdate-time
HARDEN_amd64 := -fcf-protection
HARDEN_arm64 := -mbranch-protection=standard
HARDEN := -fstack-protector-strong -fstack-clash-protection $(HARDEN_$(ARCH)) -fPIE
CFLAGS_ALL := -std=gnu17 -g -D_GNU_SOURCE -DHEARTH_VERSION='"$(VERSION)"' -I. -I$(BUILD) -MMD -MP $(HARDEN)
LDFLAGS_ALL := -pie -Wl,-z,relro,-z,now -Wl,--as-needed
ifeq ($(DEBUG),1)
CFLAGS_ALL += -O0
else
CFLAGS_ALL += -O2 -ffunction-sections -fdata-sections
LDFLAGS_ALL += -Wl,--gc-sections
endif
ifeq ($(SAN),1)
CFLAGS_ALL += -fsanitize=address,undefined$(FUZZER) -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDFLAGS_ALL += -fsanitize=address,undefined
WARN := $(filter-out -Wnull-dereference,$(WARN)) -Wno-missing-field-initializers # clang's are others than gcc's
else ifneq ($(DEBUG),1)
CFLAGS_ALL += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
endif
CFLAGS_ALL += $(if $(CROSS),--sysroot=$(SYSROOT)) $(CFLAGS)
LDFLAGS_ALL += $(if $(CROSS),--sysroot=$(SYSROOT)) $(LDFLAGS)
include vendor/deps.mk

# --- layers: each folder one archive; a layer links only what stands below it ---
LAYERS := base proto symbols sinks agent backend cmd
# A file called after another CPU is not built.
OTHER_CPUS := $(filter-out $(if $(filter amd64,$(ARCH)),x86_64,$(ARCH)),x86_64 arm64)
src = $(filter-out $(OTHER_CPUS:%=\%_%.c),$(wildcard $(1)/*.c))
obj = $(patsubst %.c,$(BUILD)/%.o,$(call src,$(1)))
below_proto := proto base
below_symbols := symbols $(below_proto)
below_sinks := sinks $(below_proto)
below_agent := agent symbols $(below_proto)
below_backend := backend symbols sinks $(below_proto)
below_cmd := cmd agent backend sinks symbols proto base
below_base := base
archives = $(foreach l,$(below_$(1)),$(BUILD)/lib/$(l).a)

PROTO_SRC := $(wildcard proto/*/*.proto)
PROTO_OBJ := $(patsubst %.proto,$(BUILD)/%.pb.o,$(PROTO_SRC))
BPF_SRC := $(wildcard bpf/*.bpf.c)
BPF_SKEL := $(patsubst bpf/%.bpf.c,$(BUILD)/bpf/%.skel.h,$(BPF_SRC))

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

# Files that base/embed.h puts into an object.
$(BUILD)/proto/flamegraph.o: proto/flamegraph.css proto/flamegraph.js
$(BUILD)/backend/page.o: $(wildcard backend/page/*)
$(BUILD)/proto/flamegraph_page.o: proto/flamegraph_page.css proto/flamegraph_page.js proto/flamegraph_plain.js
$(BUILD)/proto/report_diff_picture.o: proto/flamegraph_compare.js

# --- BPF: one object a program file, embedded as a skeleton ---
BPF_CFLAGS := -std=gnu11 -g -O2 -target bpf -D__TARGET_ARCH_$(BPF_TARGET_$(ARCH)) -I. $(BPF_INCLUDES) -Wall -Wextra -Wno-unused-parameter -Werror -MMD -MP
$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c | $(BUILD)/.deps
	$(call say,BPF,$@) mkdir -p $(@D) && $(CLANG) $(BPF_CFLAGS) -MT $@ -MF $(@:.o=.d) -c -o $@ $<

$(BUILD)/bpf/%.skel.h: $(BUILD)/bpf/%.bpf.o
	$(call say,SKEL,$@) $(BPFTOOL) gen skeleton $< name $*_bpf > $@

$(call obj,agent): | $(BPF_SKEL)

# --- what it takes ---
.PHONY: deps
deps:
	$(Q)tools/deps.sh

# A build without its libraries should say so in one line, not in pages of missing headers.
$(BUILD)/.deps: vendor/packages.txt tools/deps.sh
	$(Q)tools/deps.sh --check $(CROSS)
	$(if $(CROSS),$(call say,SYSROOT,$(SYSROOT)) tests/vm/sysroot.sh $(CROSS) $(SYSROOT))
	$(Q)mkdir -p $(@D) && touch $@

# --- running ---
.PHONY: run
run: deps
	$(Q)$(MAKE) --no-print-directory all
	$(Q)exec $(BUILD)/hearth $(ARGS)

# --- tests ---
# Tests that hold x86-64's code, registers or rows, or build programs for this machine; and what qemu-user
# cannot do (helper processes behind seccomp filters, openat2). What stands above the agent knows no CPU.
UNIT_LAYERS := $(if $(CROSS),base agent,*)
UNIT_ONLY_amd64 := $(patsubst %,tests/unit/agent/test_%.c,late stacks rows rows_code code_bounds rows_entry rows_quick rows_files rows_go unwind blocks dense \
	debug_files $(if $(CROSS),elf_helper elf_service index_helper indexes interval jit_names proc_maps))
UNIT_SRC := $(filter-out $(OTHER_CPUS:%=\%_%.c) $(if $(filter amd64,$(ARCH)),,$(UNIT_ONLY_amd64)),$(wildcard $(UNIT_LAYERS:%=tests/unit/%/test_*.c)))
UNIT_BIN := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(UNIT_SRC))
unit_layer = $(firstword $(subst /, ,$(patsubst $(BUILD)/unit/%,%,$(1))))

# Not optimized, which takes longer than running them.
$(BUILD)/tests/unit/%.o: CFLAGS_ALL += -DTEST_DATA='"tests"' -O0 -U_FORTIFY_SOURCE
.SECONDEXPANSION:
$(BUILD)/unit/%: $(BUILD)/tests/unit/%.o $$(call archives,$$(call unit_layer,$$@))
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS) -lcmocka

.PHONY: unit-bins test-unit test-arm64 test-system test-vm truth symbols-truth test lint format bench fuzz
unit-bins: $(UNIT_BIN)

test-unit: unit-bins
	$(Q)HEARTH_TEST_RUNNER="$(if $(CROSS),qemu-$(firstword $(subst -, ,$(TRIPLE_$(ARCH))))-static -L $(abspath $(SYSROOT)))" tests/run-unit.sh $(BUILD) $(UNIT_BIN)

# The same for arm64 by qemu-user, but for what needs a kernel of that CPU (test-vm has it).
test-arm64:
	$(Q)tools/deps.sh --vm
	$(Q)$(MAKE) --no-print-directory ARCH=arm64 BUILD=$(BUILD)-arm64 test-unit

test-system: all judge-bin
	$(Q)tests/run-system.sh $(BUILD)

# KERNELS: those of them that are to be tried
test-vm: all
	$(Q)tools/deps.sh --vm
	$(if $(if $(KERNELS),$(filter %-arm64,$(KERNELS)),1),$(Q)$(MAKE) --no-print-directory ARCH=arm64 BUILD=$(BUILD)-arm64 all)
	$(Q)tests/run-vm.sh $(BUILD) $(KERNELS)

truth: all
	$(Q)tests/truth/matrix.sh --all --table $(BUILD)/hearth $(BUILD)/truth/matrix-all $(BUILD)/truth/run

# Names, files and lines of more than 100,000 addresses against other tools, and every name of the largest programs here.
symbols-truth: all $(BUILD)/symbols/demangle
	$(Q)tests/symbols/names.sh $(BUILD)
	$(Q)tests/symbols/run.sh $(BUILD) long

$(BUILD)/symbols/demangle: $(BUILD)/tests/symbols/demangle.o $(call archives,symbols)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

test: deps
	$(Q)tests/run.sh

lint:
	$(Q)tools/lint.sh

format:
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h')

bench: all $(BUILD)/bench/names $(BUILD)/bench/store $(BUILD)/bench/capture $(BUILD)/bench/encode
	$(Q)tools/bench/run.sh $(BUILD) $(FIGURES)

$(BUILD)/bench/capture: $(BUILD)/tools/bench/capture.o $(call archives,proto)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$(BUILD)/bench/encode: $(BUILD)/tools/bench/encode.o $(call archives,proto)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$(BUILD)/bench/store: $(BUILD)/tools/bench/store.o $(call archives,backend)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$(BUILD)/bench/names: $(BUILD)/tools/bench/names.o $(call archives,symbols)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

# --- the judge of the stack walk: a program of its own over hearth's archives ---
JUDGE_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/judge/*.c))
$(BUILD)/judge/judge: $(JUDGE_OBJ) $(call archives,agent)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

# Peers from language registries: what hearth writes, in the tools that read it.
.PHONY: peers
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

# Tests that must fail: what handles a case is taken out, one after another. A quarter of an hour.   MUTANTS: those of them to try
.PHONY: mutants
mutants: all
	$(Q)tests/mutants/run.sh $(BUILD) $(MUTANTS)

# --- fuzzing: clang's libFuzzer over the same sources, sanitized, in a folder of their own ---
FUZZ_SECONDS ?= 60
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

$(BUILD)/fuzz/%: $(BUILD)/tests/fuzz/%.o $(call archives,cmd)
	$(call say,LD,$@) mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $^ $(LIBS)

.PHONY: fuzz-here
fuzz-here: $(FUZZ_BIN)
	$(Q)tests/run-fuzz.sh $(BUILD) $(FUZZ_SECONDS) $(FUZZ_BIN)
fuzz:
	$(Q)$(MAKE) --no-print-directory BUILD=build-fuzz SAN=1 FUZZER=,fuzzer-no-link CC=$(CLANG) fuzz-here

# --- installing ---
.PHONY: install clean
install: all
	install -Dm755 -s $(BUILD)/hearth $(DESTDIR)$(PREFIX)/bin/hearth
	mkdir -p $(DESTDIR)$(PREFIX)/share/man/man1
	$(BUILD)/hearth help --man > $(DESTDIR)$(PREFIX)/share/man/man1/hearth.1
	mkdir -p $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(BUILD)/hearth help --completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/hearth
	$(BUILD)/hearth help --completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_hearth
	$(BUILD)/hearth help --completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/hearth.fish

clean:
	rm -rf build build-san build-debug build-san-debug build-fuzz build-arm64*

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
