/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process table. A process that ran before us, or whose records were lost, is read from /proc when first asked for; from
 * then on side-band records keep it. Objects are reference counted because stacks of this interval may outlive a process.
 * Agent's thread only.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/proc/proc_maps.h"
#include "agent/proc/proc_reader.h"
#include "agent/proc/proc_root.h"
#include "agent/process/chain_states.h"
#include "agent/process/process_objects.h"
#include "agent/process/processes.h"
#include "agent/process/restless.h"
#include "agent/kernel/sampler.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"

enum {
	REPLACED_REST_MS = 1000,
	COMPARED_BYTES = 1024,
	LOOK_AT_ALL_ROUNDS = 12, /* rounds of expiring: a minute */
};

struct processes {
	struct map by_pid;	 /* owns one reference each */
	struct process *outside; /* a reference; NULL: there was no such process yet */
	struct files *files;
	uint32_t rounds; /* rounds of expiring */
	void (*on_map)(void *arg, struct process *p, struct file *file, const char *path, uint32_t task); /* NULL: nobody */
	void *on_map_arg;
};

int processes_new(struct files *files, struct processes **ret)
{
	struct processes *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return -ENOMEM;
	ps->files = files;
	*ret = ps;
	return 0;
}

void processes_on_map(struct processes *ps,
		      void (*fn)(void *arg, struct process *p, struct file *file, const char *path, uint32_t task),
		      void *arg)
{
	ps->on_map = fn;
	ps->on_map_arg = arg;
}

struct process *process_get(struct process *p)
{
	p->refs++;
	return p;
}

struct str process_name(const struct process *p)
{
	const char *slash = p->exe_path ? strrchr(p->exe_path, '/') : NULL;
	const char *name = slash ? slash + 1 : p->exe_path ? p->exe_path : p->comm;

	return (struct str){ name, (uint32_t)strlen(name) };
}

void process_put(struct process *p)
{
	if (!p || --p->refs)
		return;
	process_objects_free(p);
	address_space_put(p->as);
	for (uint32_t i = 0; i < PROCESS_SLOTS; i++)
		if (p->slots[i])
			p->slots[i]->free(p->slots[i]);
	if (p->context)
		p->context->free(p->context);
	process_facts_put(p->facts);
	free(p->exe_path);
	free(p);
}

void processes_free(struct processes *ps)
{
	size_t pos = 0;
	void *p;

	if (!ps)
		return;
	while (map_next(&ps->by_pid, &pos, NULL, &p))
		process_put(p);
	map_fini(&ps->by_pid);
	process_put(ps->outside);
	free(ps);
}

uint32_t processes_count(const struct processes *ps)
{
	return (uint32_t)ps->by_pid.count;
}

size_t processes_memory_bytes(const struct processes *ps)
{
	size_t bytes = sizeof(*ps) + map_memory_bytes(&ps->by_pid), pos = 0;
	void *value;

	while (map_next(&ps->by_pid, &pos, NULL, &value)) {
		const struct process *p = value;

		bytes += sizeof(*p) + map_memory_bytes(&p->objects) + (p->exe_path ? strlen(p->exe_path) + 1 : 0) +
			 address_space_memory_bytes(p->as) / p->as->refs;
		if (p->facts)
			bytes += process_facts_memory_bytes(p->facts) / p->facts->refs;
	}
	return bytes;
}

/* Puts @p in place of the process that had its pid. */
static int insert(struct processes *ps, struct process *p)
{
	struct process *old = map_get(&ps->by_pid, p->pid);

	if (map_put(&ps->by_pid, p->pid, p))
		return -ENOMEM;
	process_put(old);
	return 0;
}

/* Makes a process that shares @as, or has an empty address space if @as is NULL. */
static struct process *make_process(uint32_t pid, struct address_space *as)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->refs = 1;
	p->pid = pid;
	p->as = as ? address_space_get(as) : address_space_new();
	if (!p->as) {
		process_put(p);
		return NULL;
	}
	return p;
}

/* Makes such a process, and puts it in place as the process @pid. */
static struct process *add_process(struct processes *ps, uint32_t pid, struct address_space *as)
{
	struct process *p = make_process(pid, as);

	if (p && insert(ps, p)) {
		process_put(p);
		return NULL;
	}
	return p;
}

struct process *processes_outside(struct processes *ps)
{
	struct process *p = ps->outside ? ps->outside : make_process(0, NULL);

	if (p && !ps->outside) {
		snprintf(p->comm, sizeof(p->comm), "[not in /proc]");
		p->is_outside = true;
		ps->outside = p;
	}
	return p;
}

/* --- /proc --- */

struct read_context {
	struct processes *ps;
	struct process *process;
	uint32_t task;	 /* the task through which its memory is looked at */
	bool only_holes; /* what is known stays */
	bool changed;
	/* The last mapping of a file so far, in the order of addresses. */
	struct file_key key;
	char path[PATH_MAX + 16];
	uint64_t start, end, offset;
	bool executable;
};

static struct file *see(struct read_context *c, const struct file_key *key, const char *path, uint64_t start, uint64_t end)
{
	const struct file_place at = { .pid = c->process->pid, .tid = c->task, .start = start, .end = end };

	return files_see(c->ps->files, key, path, &at);
}

/* Does the memory at [@start, @end) hold what @file does from @off on? Its first, middle and last page must. */
static bool holds_file(struct read_context *c, uint64_t start, uint64_t end, struct file *file, uint64_t off)
{
	const uint64_t pages[] = { start, start + ((end - start) / 2 & ~4095ull), end - 4096 };
	AUTO(buf_fini) struct buf bytes = BUF_EMPTY;

	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		if (proc_read(c->process->pid, c->task, "mem", pages[i], COMPARED_BYTES, &bytes) ||
		    bytes.len != COMPARED_BYTES ||
		    !files_hold(c->ps->files, file, off + (pages[i] - start), bytes.data, COMPARED_BYTES))
			return false;
	}
	return true;
}

/*
 * Programs move their code into anonymous memory at the same place, for huge pages. Is [@start, @end) such code, of the file
 * that we knew to be there, or of the file mapped right before it? Then the code still has the file's rows and names.
 */
static struct file *moved_code(struct read_context *c, uint64_t start, uint64_t end, uint64_t *off_ret)
{
	const struct mapping *there = address_space_find(c->process->as, start);
	struct file *file;

	if (there && there->file)
		return !file_offset(there->file, start - there->bias, off_ret) &&
				       holds_file(c, start, end, there->file, *off_ret)
			       ? there->file
			       : NULL;
	if (there || !c->key.inode || c->end != start)
		return NULL;
	file = see(c, &c->key, c->path, c->start, c->end);
	if (!file || file->state == FILE_UNREADABLE)
		return NULL;
	*off_ret = c->offset + (start - c->start);
	if (c->executable)
		return holds_file(c, start, end, file, *off_ret) ? file : NULL;
	for (uint32_t i = 0; i < file->info.segment_count; i++) {
		*off_ret = file->info.segments[i].offset & ~4095ull;
		if (holds_file(c, start, end, file, *off_ret))
			return file;
	}
	return NULL;
}

/* Memory that a program mapped twice, to write code and to run it, has a name in place of a file. */
static bool is_memory(const struct file *file, const char *path)
{
	static const char name[] = "/memfd:";

	return file->state == FILE_UNREADABLE && !strncmp(path, name, sizeof(name) - 1);
}

/* The file that stands for code that a runtime keeps in @file, which is none of it as an ELF file (.NET's images). */
static struct file *code_in_file(const struct address_space *as, const struct file *file, uint64_t start, uint64_t end,
				 uint64_t off, uint64_t *off_ret)
{
	uint64_t bias;

	if (file->state != FILE_UNREADABLE && !file_bias(file, start, off, &bias))
		return NULL;
	return address_space_code_file(as, start, end, off_ret);
}

static int map_in(struct read_context *c, const struct file_key *key, const char *path, uint64_t start, uint64_t end,
		  uint64_t off)
{
	struct file *file = NULL, *code;
	int status;

	if (key->inode || !strcmp(path, "[vdso]")) {
		file = see(c, key, path, start, end);
		if (!file)
			return -ENOMEM;
		code = code_in_file(c->process->as, file, start, end, off, &off);
		if (code || is_memory(file, path))
			file = code;
		else if (c->ps->on_map)
			c->ps->on_map(c->ps->on_map_arg, c->process, file, path, c->task);
	} else if (!strcmp(path, "[vsyscall]")) {
		return 0;
	} else {
		file = address_space_code_file(c->process->as, start, end, &off);
		if (!file)
			file = moved_code(c, start, end, &off);
	}
	if (c->only_holes && address_space_would_replace(c->process->as, start, end, off, file))
		return 0;
	status = address_space_map(&c->process->as, start, end, off, file);
	c->changed |= status == 1;
	return status < 0 ? status : 0;
}

static int read_mapping(void *arg, const struct proc_map *map)
{
	struct file_key key = { .dev_major = map->dev_major, .dev_minor = map->dev_minor, .inode = map->inode };
	struct read_context *c = arg;
	char path[PATH_MAX + 16];
	int error = 0;

	if (map->path_len >= sizeof(path) || (!map->executable && !map->inode))
		return 0;
	if (c->process->as->count >= RESTLESS_MAPPINGS)
		return -ENOSPC;
	memcpy(path, map->path, map->path_len);
	path[map->path_len] = '\0';
	if (map->executable)
		error = map_in(c, &key, path, map->start, map->end, map->offset);
	if (map->inode) {
		memcpy(c->path, path, map->path_len + 1);
		c->key = key;
		c->start = map->start;
		c->end = map->end;
		c->offset = map->offset;
		c->executable = map->executable;
	}
	return error;
}

static void set_exe(struct process *p, const char *path)
{
	p->exe_path = strdup(path);
	if (p->exe_path)
		proc_path_strip(p->exe_path);
}

static void read_comm(struct process *p)
{
	char path[PROC_PATH_BYTES];
	AUTO_FCLOSE FILE *f = fopen(proc_path(path, p->pid, "comm"), "re");

	if (f && fgets(p->comm, sizeof(p->comm), f))
		p->comm[strcspn(p->comm, "\n")] = '\0';
}

static int read_maps(struct processes *ps, struct process *p, uint32_t task, bool only_holes)
{
	struct read_context c = { .ps = ps, .process = p, .task = task, .only_holes = only_holes };
	int error = p->is_restless ? 0 : proc_maps_each(c.task, read_mapping, &c);

	return error ? error : c.changed;
}

static int reread(struct processes *ps, struct process *p, bool only_holes)
{
	return read_maps(ps, p, proc_maps_task(p->pid, NULL, 0), only_holes);
}

int process_reread(struct processes *ps, struct process *p)
{
	const uint64_t began_ns = clock_mono_ns();
	int status = allowance_is_left(&p->reading, began_ns) ? reread(ps, p, true) : 0;

	allowance_spend(&p->reading, began_ns, clock_mono_ns());
	return status;
}

struct process *processes_find(struct processes *ps, uint32_t pid)
{
	struct process *p = map_get(&ps->by_pid, pid);

	return p ? p : processes_renew(ps, pid);
}

struct process *processes_peek(struct processes *ps, uint32_t pid)
{
	return map_get(&ps->by_pid, pid);
}

void process_publish(struct process *p, struct sampler *sampler)
{
	if (!p->is_known)
		return;
	if (p->is_restless ||
	    (p->as->replaced_ns && clock_mono_ns() - p->as->replaced_ns < REPLACED_REST_MS * NSEC_PER_MSEC))
		(void)sampler_forget_proc(sampler, p->pid);
	else
		(void)sampler_set_proc(sampler,
				       &(struct proc_value){ .pid = p->pid,
							     .start_boottime_ns = p->start_boottime_ns,
							     .exec_id = p->exec_id,
							     .asid = p->as->asid,
							     .runtimes = chain_states_tell(p->as, p->exe_path, sampler) });
}

struct process *processes_renew(struct processes *ps, uint32_t pid)
{
	struct process *p = add_process(ps, pid, NULL);
	char exe[PATH_MAX];
	uint32_t task;

	if (!p)
		return NULL;
	read_comm(p);
	task = proc_maps_task(pid, exe, sizeof(exe));
	if (*exe) { /* else a thread of the kernel, or gone already: it stays without mappings */
		set_exe(p, exe);
		(void)read_maps(ps, p, task, false);
	}
	return p;
}

int processes_scan(struct processes *ps)
{
	struct dirent *entry;
	DIR *dir = opendir(proc_root());

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		char *end;
		unsigned long pid = strtoul(entry->d_name, &end, 10);

		if (isdigit((unsigned char)entry->d_name[0]) && !*end && pid <= INT_MAX)
			(void)processes_find(ps, (uint32_t)pid);
	}
	closedir(dir);
	return 0;
}

void processes_each(struct processes *ps, void (*fn)(void *arg, struct process *p), void *arg)
{
	size_t pos = 0;
	void *value;

	while (map_next(&ps->by_pid, &pos, NULL, &value))
		fn(arg, value);
}

static void tell_chains(void *arg, struct process *p)
{
	(void)chain_states_tell(p->as, p->exe_path, arg);
}

void processes_tell_chains(struct processes *ps, struct sampler *sampler)
{
	processes_each(ps, tell_chains, sampler);
}

/* Does the pid belong to another process now, or has it executed another program, without a record that we saw? */
static bool has_other_program(const struct process *p)
{
	char exe[PATH_MAX];

	if (proc_read_link(p->pid, p->pid, "exe", false, exe, sizeof(exe)) <= 0)
		return false;
	proc_path_strip(exe);
	return !p->exe_path || strcmp(exe, p->exe_path) != 0;
}

void processes_reread_all(struct processes *ps, void (*fn)(void *arg, struct process *p), void *arg)
{
	size_t pos = 0;
	void *p;

	while (map_next(&ps->by_pid, &pos, NULL, &p)) {
		struct process *known = p;

		if (has_other_program(known))
			(void)processes_renew(ps, known->pid); /* replaces it in place */
		else if (reread(ps, known, false) == 1)
			fn(arg, known);
	}
	(void)processes_scan(ps);
}

void processes_reread_met(struct processes *ps, void (*fn)(void *arg, struct process *p), void *arg)
{
	size_t pos = 0;
	void *p;

	while (map_next(&ps->by_pid, &pos, NULL, &p)) {
		struct process *known = p;

		if (known->is_met && reread(ps, known, false) == 1)
			fn(arg, known);
		known->is_met = false;
	}
}

bool process_is_in_proc(uint32_t pid)
{
	char path[PROC_PATH_BYTES];
	struct stat st;

	return !stat(proc_path(path, pid, ""), &st);
}

struct expiry {
	void (*fn)(void *arg, struct process *p);
	void *arg;
	bool looks_at_all;
};

static void *keep_process(void *arg, void *value)
{
	const struct expiry *expiry = arg;
	struct process *p = value;

	if ((!p->has_exited && !expiry->looks_at_all) || process_is_in_proc(p->pid))
		return p;
	if (!p->has_exited) {
		p->has_exited = true; /* all other records about it will have come by the next round */
		return p;
	}
	expiry->fn(expiry->arg, p);
	process_put(p);
	return NULL;
}

void processes_expire(struct processes *ps, void (*fn)(void *arg, struct process *p), void *arg)
{
	struct expiry expiry = { fn, arg, ++ps->rounds % LOOK_AT_ALL_ROUNDS == 0 };

	map_sweep(&ps->by_pid, keep_process, &expiry);
}

/* --- records --- */

static int apply_fork(struct processes *ps, const struct side_band_record *r)
{
	struct process *parent, *child;

	if (r->pid == r->parent_pid) /* a thread */
		return 0;
	if (!r->parent_pid) /* from outside, as with `docker exec` */
		return processes_renew(ps, r->pid) ? 0 : -ENOMEM;
	parent = processes_find(ps, r->parent_pid);
	if (!parent)
		return -ENOMEM;
	child = add_process(ps, r->pid, parent->as);
	if (!child)
		return -ENOMEM;
	memcpy(child->comm, parent->comm, sizeof(child->comm));
	child->exec_id = parent->exec_id;
	child->expects_exec_id = parent->is_known || parent->expects_exec_id;
	child->exe_path = parent->exe_path ? strdup(parent->exe_path) : NULL;
	child->facts = process_facts_get(parent->facts);
	return 0;
}

static int apply_comm(struct processes *ps, const struct side_band_record *r)
{
	struct process *p = map_get(&ps->by_pid, r->pid);

	if (r->is_exec) { /* a new program: nothing of the old one stays */
		const bool expects_exec_id = p && (p->is_known || p->expects_exec_id);
		const uint64_t exec_id = p ? p->exec_id + 1 : 0;

		p = add_process(ps, r->pid, NULL);
		if (!p)
			return -ENOMEM;
		p->exec_id = exec_id;
		p->expects_exec_id = expects_exec_id;
	}
	if (p && r->pid == r->tid)
		snprintf(p->comm, sizeof(p->comm), "%.*s", COMM_BYTES - 1, r->name);
	return 0;
}

static int apply_mmap(struct processes *ps, const struct side_band_record *r, struct process **changed_ret)
{
	struct process *p = processes_find(ps, r->pid);
	struct read_context c = { .ps = ps, .process = p, .task = r->tid };
	int error;

	if (!p || p->is_restless)
		return p ? 0 : -ENOMEM;
	error = map_in(&c, &r->key, r->name, r->start, r->end, r->pgoff);
	if (!p->exe_path && r->name[0] == '/' && r->key.inode) /* the program itself is mapped first */
		set_exe(p, r->name);
	if (c.changed || (p->is_known && !p->as->chains_told))
		*changed_ret = p;
	return error;
}

int processes_apply(struct processes *ps, const struct side_band_record *r, struct process **changed_ret)
{
	struct process *p;

	*changed_ret = NULL;
	switch (r->kind) {
	case SIDE_BAND_FORK:
		return apply_fork(ps, r);
	case SIDE_BAND_COMM:
		return apply_comm(ps, r);
	case SIDE_BAND_MMAP:
		return apply_mmap(ps, r, changed_ret);
	case SIDE_BAND_EXIT:
		p = map_get(&ps->by_pid, r->pid);
		if (p && r->pid == r->tid)
			p->has_exited = true;
		return 0;
	case SIDE_BAND_KSYMBOL:
	case SIDE_BAND_LOST: /* the agent handles these */
		return 0;
	}
	return 0;
}
