/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There are two layers. The upper one has the code that the kernel told of since we run: ranges with exact ends, by time, as
 * for other code that is made at run time (symbols/jit/jit_code.h). The lower one is the kernel's list, 5 MB of text. It is
 * read again when /proc/modules (some KB) has changed, and after a minute when an address had no name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/kernel/kernel_names.h"
#include "agent/kernel/side_band.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/metrics.h"
#include "symbols/jit/jit_code.h"
#include "symbols/symbols.h"

enum { MISS_SECONDS = 60, REPLACED_SECONDS = 60 };

struct kernel_names {
	struct kallsyms *list;
	uint64_t list_read_ns;
	bool is_refused;
	bool has_missed;    /* an address had no name */
	struct buf modules; /* /proc/modules when the list was read */
	struct buf modules_now;
	struct jit_code *made;
	uint32_t version; /* changes of the list */
	uint32_t changes; /* changes of the code that was told */
	char name[JIT_CODE_MAX_NAME_BYTES + 1];
	struct metric *told, *read;
};

int kernel_names_new(struct metrics *metrics, struct kernel_names **ret)
{
	struct kernel_names *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->made = jit_code_new();
	if (!k->made) {
		free(k);
		return -ENOMEM;
	}
	k->told = metrics_counter(metrics, "hearth_kernel_symbols_told_total", NULL,
				  "Times the kernel told of code it made or dropped: BPF programs, trampolines.");
	k->read = metrics_counter(metrics, "hearth_kernel_symbols_read_total", NULL, "Times /proc/kallsyms was read.");
	*ret = k;
	return 0;
}

void kernel_names_free(struct kernel_names *k)
{
	if (!k)
		return;
	kallsyms_free(k->list);
	jit_code_free(k->made);
	buf_fini(&k->modules);
	buf_fini(&k->modules_now);
	free(k);
}

void kernel_names_apply(struct kernel_names *k, const struct side_band_record *r)
{
	struct jit_function f = {
		.start = r->start, .end = r->end, .time_ns = r->time_ns, .name = r->name, .name_len = strlen(r->name)
	};

	metric_add(k->told, 1);
	k->changes++;
	if (!r->is_unregister) {
		(void)jit_code_add(k->made, &f);
		return;
	}
	if (!kernel_names_code(k,
			       r->start)) { /* the code is older than we are, and soon the list will not have it any more */
		f.time_ns = 1;
		(void)jit_code_add(k->made, &f);
	}
	(void)jit_code_remove(k->made, r->start, r->end, r->time_ns);
}

static void read_list(struct kernel_names *k, uint64_t now_ns)
{
	struct kallsyms *fresh;
	int error = kallsyms_new(NULL, &fresh);

	k->list_read_ns = now_ns;
	metric_add(k->read, 1);
	if (error) {
		k->is_refused = !k->list;
		log_warn("kernel frames stay without names: /proc/kallsyms: %s%s", strerror(-error),
			 error == -EPERM ? " (kernel.kptr_restrict hides the addresses; 'sysctl kernel.kptr_restrict=1' "
					   "shows them to root)"
					 : "");
		return;
	}
	kallsyms_free(k->list);
	k->list = fresh;
	k->has_missed = false;
	k->version++;
}

static void read_modules(struct buf *out)
{
	struct buf text = BUF_EMPTY;

	(void)io_read_file("/proc/modules", SIZE_MAX, &text);
	buf_reset(out);
	kallsyms_modules(buf_text(&text), out);
	buf_fini(&text);
}

void kernel_names_update(struct kernel_names *k, uint64_t since_ns)
{
	uint64_t now_ns = clock_mono_ns();
	struct buf before = k->modules;
	bool is_old = k->has_missed && now_ns - k->list_read_ns >= MISS_SECONDS * NSEC_PER_SEC;

	if (since_ns > REPLACED_SECONDS * NSEC_PER_SEC)
		jit_code_forget(k->made, since_ns - REPLACED_SECONDS * NSEC_PER_SEC);
	if (k->is_refused)
		return;
	read_modules(&k->modules_now);
	if (k->list && !is_old && k->modules_now.len == before.len &&
	    (!before.len || !memcmp(k->modules_now.data, before.data, before.len)))
		return;
	k->modules = k->modules_now;
	k->modules_now = before;
	read_list(k, now_ns);
}

size_t kernel_names_memory_bytes(const struct kernel_names *k)
{
	return sizeof(*k) + (k->list ? kallsyms_memory_bytes(k->list) : 0) + jit_code_memory_bytes(k->made) +
	       k->modules.cap + k->modules_now.cap;
}

uint32_t kernel_names_version(const struct kernel_names *k)
{
	return k->version;
}

uint32_t kernel_names_changes(const struct kernel_names *k)
{
	return k->changes;
}

uint64_t kernel_names_code(const struct kernel_names *k, uint64_t addr)
{
	struct jit_answer a;
	int status = jit_code_find(k->made, addr, UINT64_MAX, &a);

	return status == -ENOENT ? 0 : a.since_ns;
}

bool kernel_names_find(struct kernel_names *k, uint64_t addr, uint64_t code, const char **name_ret, const char **module_ret)
{
	/* Code from before we heard of anything has the name that it had when it went. */
	uint64_t time_ns = code ? code : 1, start;
	struct jit_answer a;
	int status = jit_code_find(k->made, addr, time_ns, &a);

	if (status != -ENOENT && a.since_ns <= time_ns) {
		if (status)
			return false;
		memcpy(k->name, a.name, a.name_len);
		k->name[a.name_len] = '\0';
		*name_ret = k->name;
		*module_ret = strncmp(k->name, "bpf_", 4) ? "" : "bpf";
		return true;
	}
	if (k->list && !kallsyms_find(k->list, addr, name_ret, module_ret, &start))
		return true;
	k->has_missed = true;
	return false;
}
