/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtimes of the processes that run now, as the agent would recognise them: it reads the files that they have mapped in
 * the same way, through the process without privileges. Files of one path and version are one line, as are those of
 * containers of one image. Programs that make code and have no such runtime are told, too. No state.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/check/check_host.h"
#include "agent/files/files.h"
#include "agent/helper/elf_helper.h"
#include "agent/process/chain_states.h"
#include "agent/process/processes.h"
#include "agent/runtime/choice.h"
#include "agent/runtime/code/code_reader.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "proto/unnamed.h"

enum {
	MAX_FOUND = 64,
	LEAST_CODE_BYTES = 128 << 10, /* executable memory without a file; less is not compilers', but stubs, as libffi's */
};

/* Processes that have a runtime from files alike. */
struct found {
	const struct file *file;
	const char *trouble; /* "": none */
	uint32_t process_cnt;
	const struct process *last; /* of these */
};

/* Processes of one program that make code of which no reader knows. */
struct unread {
	const char *path; /* of the program, a process's */
	const char *reason;
	uint32_t process_cnt;
};

struct runtimes_found {
	struct found list[MAX_FOUND];
	struct unread unread[MAX_FOUND];
	uint32_t count, unread_cnt;
	uint32_t left_out_cnt; /* processes for which the list has no room */
};

/* The number by which its users know the runtime of @file. */
static uint32_t number_of(const struct file *file)
{
	const struct runtime_file *runtime = &file->info.runtime;

	return runtime->kind == RUNTIME_FILE_CODE ? RUNTIME_OF_CODE + runtime->code.id : runtime->id;
}

static bool is_alike(const struct file *a, const struct file *b)
{
	return number_of(a) == number_of(b) && a->info.runtime.version == b->info.runtime.version && a->path && b->path &&
	       !strcmp(a->path, b->path);
}

static void add(struct runtimes_found *found, const struct process *p, const struct file *file, const char *trouble)
{
	struct found *f = found->list;

	while (f < found->list + found->count && !(!strcmp(f->trouble, trouble) && is_alike(f->file, file)))
		f++;
	if (f == found->list + MAX_FOUND) {
		found->left_out_cnt++;
		return;
	}
	if (f == found->list + found->count) {
		*f = (struct found){ .file = file, .trouble = trouble };
		found->count++;
	}
	f->process_cnt += f->last != p; /* it has several pieces of the file */
	f->last = p;
}

static const char *trouble_of(const struct code_facts *facts)
{
	const struct code_reader *reader = code_reader_of(facts->id);
	const char *lacks = reader->lacks ? reader->lacks(facts) : NULL;

	return lacks ? lacks : "";
}

/* --- code that is not read --- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Why code of a process that has the file @path mapped is not read; NULL: the file does not tell. */
static const char *reason_by_file(const char *path)
{
	static const char v8[] = "V8, built without the constants for debuggers (v8dbg_*) by which it is read";
	static const struct {
		const char *begin, *reason;
	} known[] = {
		{ "deno", v8 },
		{ "chrom", v8 },
		{ "electron", v8 },
		{ "libQt5WebEngine", v8 },
		{ "libQt6WebEngine", v8 },
		{ "bun", "JavaScriptCore has no reader" },
		{ "libjavascriptcoregtk", "JavaScriptCore has no reader" },
		{ "libxul.so", "SpiderMonkey has no reader" },
		{ "libj9vm", "OpenJ9 has no reader" },
		{ "mono", "Mono has no reader" },
		{ "libmono", "Mono has no reader" },
		{ "wasmtime", "Wasmtime has no reader" },
		{ "sbcl", "SBCL has no reader" },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strncmp(last_part(path), known[i].begin, strlen(known[i].begin)))
			return known[i].reason;
	return NULL;
}

static void add_unread(struct runtimes_found *found, const char *path, const char *reason)
{
	struct unread *u = found->unread;

	while (u < found->unread + found->unread_cnt && strcmp(u->path, path) != 0)
		u++;
	if (u == found->unread + MAX_FOUND) {
		found->left_out_cnt++;
		return;
	}
	if (u == found->unread + found->unread_cnt) {
		*u = (struct unread){ .path = path, .reason = reason };
		found->unread_cnt++;
	}
	u->process_cnt++;
}

/* Looks at a process without a runtime that is known: does it make code? */
static void look_for_code(struct runtimes_found *found, const struct process *p)
{
	const char *path = p->exe_path, *reason = NULL;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < p->as->count; i++) {
		const struct mapping *m = &p->as->maps[i];

		if (!m->file)
			bytes += m->end - m->start;
		else if (m->file->path && !reason)
			reason = reason_by_file(m->file->path);
		if (!path && m->file)
			path = m->file->path;
	}
	if (bytes >= LEAST_CODE_BYTES)
		add_unread(found, path ? path : p->comm, reason ? reason : "no reader knows it");
}

/* --- processes --- */

/* Is @file (NULL is fine) of a runtime that makes code of functions? Regular expressions are none. */
static bool is_of_code(const struct file *file)
{
	return file && file->info.runtime.kind == RUNTIME_FILE_CODE && file->info.runtime.code.id != CODE_PCRE;
}

static void look(void *arg, struct process *p)
{
	static const char *const troubles[] = { CHAIN_TROUBLES(CHAIN_TROUBLE_TEXT) };
	struct chain_state ignored;
	bool has_runtime = false;

	for (uint32_t i = 0; i < p->as->count; i++) {
		const struct mapping *m = &p->as->maps[i];

		if (m->file && m->file->info.runtime.kind == RUNTIME_FILE_CHAIN)
			add(arg, p, m->file, troubles[chain_state_of(p->as, m, &ignored)]);
		if (is_of_code(m->file) && code_reader_of(m->file->info.runtime.code.id))
			add(arg, p, m->file, trouble_of(&m->file->info.runtime.code));
		has_runtime |= is_of_code(m->file) || (m->file && m->file->info.runtime.kind == RUNTIME_FILE_CHAIN);
	}
	if (!has_runtime)
		look_for_code(arg, p);
}

/* --- words --- */

/* Of a runtime that makes code the major version may be all that is known. */
static void print_version(uint32_t version, bool is_of_code, char *text, size_t size)
{
	if (is_of_code && !(version & 0xffff))
		snprintf(text, size, version ? "%u" : "of any version", version >> 16);
	else if (version & 0xff)
		snprintf(text, size, "%u.%u.%u", version >> 16, version >> 8 & 0xff, version & 0xff);
	else if (version)
		snprintf(text, size, "%u.%u", version >> 16, version >> 8 & 0xff);
	else
		snprintf(text, size, "of an unknown version");
}

static void say(struct checker *c, const struct found *f)
{
	static const char *const ways[] = { RUNTIME_WAYS(RUNTIME_WAY_TEXT) };
	const struct runtime_file *runtime = &f->file->info.runtime;
	char name[256], found[256], version[40];

	print_version(runtime->version, runtime->kind == RUNTIME_FILE_CODE, version, sizeof(version));
	snprintf(name, sizeof(name), "%s %s (%s)", runtime_own_word(number_of(f->file)), version,
		 f->file->path ? f->file->path : "a file without a name");
	snprintf(found, sizeof(found), "%u process%s, recognised by %s%s%s", f->process_cnt, f->process_cnt == 1 ? "" : "es",
		 ways[runtime->way], *f->trouble ? "; " : "", f->trouble);
	checker_say(c, name, *f->trouble ? CHECK_PARTLY : CHECK_YES, found,
		    *f->trouble ? "its stacks stay those of the interpreter, without the functions of scripts"
				: "the functions of its scripts are shown, with files and lines",
		    "nothing to be done here, unless another version can run it: docs/scripts.md and docs/jit.md list those "
		    "that are "
		    "read");
}

static void say_unread(struct checker *c, const struct unread *u)
{
	char name[256], found[256];

	snprintf(name, sizeof(name), "code that %s makes", u->path);
	snprintf(found, sizeof(found), "%u process%s; %s", u->process_cnt, u->process_cnt == 1 ? "" : "es", u->reason);
	checker_say(c, name, CHECK_PARTLY, found, "its functions stay [JIT code], and stacks may end there",
		    unnamed_generated_advice(last_part(u->path)));
}

static void say_all(struct checker *c, const struct runtimes_found *found)
{
	char text[64];

	if (!found->count)
		checker_say(c, "interpreters", CHECK_YES, "none is running", "the functions of their scripts are shown", "");
	for (uint32_t id = 0; id < RUNTIME_OF_CODE + CODE_ID_MAX; id++)
		for (uint32_t i = 0; i < found->count; i++)
			if (number_of(found->list[i].file) == id)
				say(c, &found->list[i]);
	for (uint32_t i = 0; i < found->unread_cnt; i++)
		say_unread(c, &found->unread[i]);
	if (!found->left_out_cnt)
		return;
	snprintf(text, sizeof(text), "%u more processes", found->left_out_cnt);
	checker_say(c, "further interpreters", CHECK_YES, text, "not listed here, as they are of many different files", "");
}

/* --- reading --- */

/* The agent's parts that recognise a runtime. */
struct parts {
	struct metrics *metrics;
	struct files *files;
	struct processes *processes;
};

static void stop(struct parts *p)
{
	processes_free(p->processes);
	files_free(p->files);
	metrics_free(p->metrics);
}

static int start(struct parts *p)
{
	struct elf_service *service = NULL;
	struct file_opener *opener = NULL;
	int error;

	p->metrics = metrics_new();
	error = p->metrics ? elf_helper_new(elf_service_new, p->metrics, &service) : -ENOMEM;
	if (!error)
		error = file_opener_new(p->metrics, &opener);
	if (error) {
		elf_service_free(service);
		return error;
	}
	error = files_new(service, opener, p->metrics, &p->files);
	return error ? error : processes_new(p->files, &p->processes);
}

void check_runtimes(struct checker *c)
{
	AUTO(stop) struct parts parts = { 0 };
	struct runtimes_found found = { .count = 0 };
	int error;

	if (geteuid()) {
		checker_say(c, "interpreters", CHECK_UNKNOWN, "permission denied",
			    "the functions of their scripts are shown",
			    "ask as root, who can see what other users' processes have mapped");
		return;
	}
	error = start(&parts);
	if (!error)
		error = processes_scan(parts.processes);
	if (error)
		checker_say(c, "interpreters", CHECK_UNKNOWN, strerror(-error), "the functions of their scripts are shown",
			    "see the lines above: hearth reads programs' files as it would do here");
	else
		processes_each(parts.processes, look, &found);
	if (!error)
		say_all(c, &found);
}
