/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There are two layers. The upper one has the code that the kernel told of since we run: ranges with exact ends, by time, as
 * for other code that is made at run time (symbols/jit/jit_code.h). The lower one is the kernel's list, 5 MB of text. It is
 * read again when /proc/modules (some KB) has changed, and after a minute when an address had no name. It is kept for later
 * starts of this boot, without what comes and goes: so the text is read when the kept one lacks an address.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

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

static const char kept_name[] = "kernel-names"; /* in the folder of indexes */

struct kernel_names {
	struct kallsyms *list;
	uint64_t list_read_ns;
	int dir_fd;   /* where lists are kept; -1: nowhere */
	bool is_kept; /* the list is an earlier start's */
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

int kernel_names_new(int dir_fd, struct metrics *metrics, struct kernel_names **ret)
{
	struct kernel_names *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->dir_fd = dir_fd < 0 ? -1 : fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	k->made = jit_code_new();
	if (!k->made) {
		kernel_names_free(k);
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
	if (k->dir_fd >= 0)
		close(k->dir_fd);
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

/* --- the list --- */

/* What tells the list of this boot, with the modules that are there now, from all others. False: it cannot be told. */
static bool list_key(struct kernel_names *k, char key[static KALLSYMS_KEY_BYTES])
{
	AUTO(buf_fini) struct buf all = BUF_EMPTY;
	XXH128_canonical_t hash;

	if (k->dir_fd < 0 || io_read_file("/proc/sys/kernel/random/boot_id", SIZE_MAX, &all) || !all.len)
		return false;
	buf_append(&all, k->modules.data, k->modules.len);
	kallsyms_module_ids(buf_text(&k->modules), "/sys/module", &all);
	_Static_assert(sizeof(hash) == KALLSYMS_KEY_BYTES, "a key is a hash");
	XXH128_canonicalFromHash(&hash, XXH3_128bits(all.data, all.len));
	memcpy(key, &hash, sizeof(hash));
	return !all.failed;
}

static void take_list(struct kernel_names *k, struct kallsyms *list, bool is_kept)
{
	kallsyms_free(k->list);
	k->list = list;
	k->is_kept = is_kept;
	k->has_missed = false;
}

/* Takes the list that an earlier start kept, if there is one. */
static bool open_kept(struct kernel_names *k, const char key[static KALLSYMS_KEY_BYTES])
{
	struct kallsyms *kept;

	if (kallsyms_kept(k->dir_fd, kept_name, key, &kept))
		return false;
	take_list(k, kept, true);
	return true;
}

static void keep_list(const struct kernel_names *k, const char key[static KALLSYMS_KEY_BYTES])
{
	int error = kallsyms_keep(k->list, k->dir_fd, kept_name, key);

	if (error)
		log_debug("the kernel's names are not kept, so they are read anew at the next start: %s", strerror(-error));
}

/* Reads the kernel's text. False: that failed, and the list that was there stays. */
static bool read_list(struct kernel_names *k, uint64_t now_ns)
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
		return false;
	}
	take_list(k, fresh, false);
	return true;
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
	bool is_old = k->has_missed && now_ns - k->list_read_ns >= MISS_SECONDS * NSEC_PER_SEC, is_changed, has_key;
	char key[KALLSYMS_KEY_BYTES];

	if (since_ns > REPLACED_SECONDS * NSEC_PER_SEC)
		jit_code_forget(k->made, since_ns - REPLACED_SECONDS * NSEC_PER_SEC);
	if (k->is_refused)
		return;
	read_modules(&k->modules_now);
	is_changed = !k->list || k->modules_now.len != before.len ||
		     (before.len && memcmp(k->modules_now.data, before.data, before.len));
	if (!is_changed && !is_old)
		return;
	k->modules = k->modules_now;
	k->modules_now = before;
	has_key = is_changed && list_key(k, key);
	if ((!has_key || !open_kept(k, key)) && read_list(k, now_ns) && has_key)
		keep_list(k, key);
	k->version++;
}

void kernel_names_rest(const struct kernel_names *k)
{
	if (k->list)
		kallsyms_rest(k->list);
}

size_t kernel_names_memory_bytes(const struct kernel_names *k)
{
	return sizeof(*k) + (k->list ? kallsyms_memory_bytes(k->list) : 0) + jit_code_memory_bytes(k->made) +
	       k->modules.cap + k->modules_now.cap;
}

size_t kernel_names_mapped_bytes(const struct kernel_names *k)
{
	return k->list ? kallsyms_mapped_bytes(k->list) : 0;
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
	if (k->is_kept) { /* it may be code that comes and goes */
		k->is_kept = false;
		(void)read_list(k, clock_mono_ns());
		return kernel_names_find(k, addr, code, name_ret, module_ret);
	}
	k->has_missed = true;
	return false;
}
