/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file's symbols are read twice at most: first as they are, then, where nothing is called so, as people read them. The
 * same readers name the code of samples, so a function can be probed by every name that a report shows.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/config.h"
#include "agent/probe/code_check.h"
#include "agent/probe/stapsdt.h"
#include "agent/probe/user_places.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/nearest.h"
#include "symbols/demangle.h"
#include "symbols/elf_image.h"
#include "symbols/find/symbol_files.h"
#include "symbols/sources/functions.h"

enum { NEAR_BYTES = 160 };

/* A search for a name in a file. */
struct search {
	const struct probe_text *text;
	struct probe_places found;
	char wanted[PROBE_NAME_BYTES + PROBE_FILE_BYTES];
	struct nearest nearest; /* to @wanted */
	char near[NEAR_BYTES];	/* a name that was perhaps meant */
	bool near_has_it;	/* it has the word in it */
	bool is_demangled;	/* names are compared as people read them */
	struct buf readable, name;
	size_t names; /* that were looked at */
};

static void search_fini(struct search *s)
{
	probe_places_fini(&s->found);
	buf_fini(&s->readable);
	buf_fini(&s->name);
}

/* Notes @name if it is the one that was perhaps meant: it has the word as a part, or is nearly the same. */
static void offer(struct search *s, const char *name)
{
	if (s->near_has_it || strlen(name) >= sizeof(s->near))
		return;
	s->near_has_it = strlen(s->wanted) > 3 && strstr(name, s->wanted);
	s->nearest.best = NULL;
	if (!s->near_has_it)
		nearest_offer(&s->nearest, name);
	if (s->near_has_it || s->nearest.best)
		snprintf(s->near, sizeof(s->near), "%s", name);
}

static bool matches(struct search *s, const struct function_symbol *f, const char *readable)
{
	AUTO(buf_fini) struct buf full = BUF_EMPTY;

	if (!s->is_demangled)
		return probe_name_matches(s->text->name, buf_text(&s->name));
	if (!symbols_is_mangled(f->name, f->len))
		return false;
	if (probe_name_matches(s->text->name, readable))
		return true;
	if (!strchr(s->text->name, '('))
		return false;
	symbols_demangle_as(DEMANGLE_FULL, f->name, f->len, &full);
	return probe_name_matches(s->text->name, buf_text(&full));
}

static void on_function(void *arg, const struct function_symbol *f)
{
	struct search *s = arg;
	struct probe_found *new;
	const char *readable;

	buf_reset(&s->name);
	buf_append(&s->name, f->name, f->len);
	buf_reset(&s->readable);
	if (s->is_demangled || symbols_is_mangled(f->name, f->len))
		symbols_demangle_as(DEMANGLE_SHORT, f->name, f->len, &s->readable);
	else
		buf_append(&s->readable, f->name, f->len);
	readable = buf_text(&s->readable);
	s->names++;
	if (!matches(s, f, readable)) {
		offer(s, readable);
		return;
	}
	probe_places_add(&s->found, f->addr, readable, &new);
	if (!new)
		return;
	new->size_bytes = f->size_bytes;
	new->is_indirect = f->is_indirect;
}

static void on_note(void *arg, const struct stapsdt_note *note)
{
	const struct probe_text *t = ((struct search *)arg)->text;
	struct search *s = arg;
	struct probe_found *new;

	s->names++;
	buf_reset(&s->name);
	buf_printf(&s->name, "%s:%s", note->provider, note->name);
	if ((t->provider[0] && !probe_name_matches(t->provider, note->provider)) ||
	    !probe_name_matches(t->name, note->name)) {
		offer(s, buf_text(&s->name));
		return;
	}
	probe_places_add(&s->found, note->addr, buf_text(&s->name), &new);
	if (!new)
		return;
	new->semaphore = note->semaphore;
	new->arguments = note->arguments;
}

/* --- from addresses to places in the file --- */

/* The place in the file of ELF address @addr, which a segment with @flags loads. False: none does. */
static bool find_offset(const struct elf_image *image, uint64_t addr, uint32_t flags, uint64_t *ret)
{
	for (uint32_t i = 0; i < image->ehdr.e_phnum; i++) {
		uint64_t at = image->ehdr.e_phoff + (uint64_t)i * sizeof(Elf64_Phdr);
		Elf64_Phdr segment;

		if (image->ehdr.e_phentsize != sizeof(segment) || at > image->len_bytes ||
		    image->len_bytes - at < sizeof(segment))
			return false;
		memcpy(&segment, image->data + at, sizeof(segment));
		if (segment.p_type != PT_LOAD || (segment.p_flags & flags) != flags || addr < segment.p_vaddr ||
		    addr - segment.p_vaddr >= (flags & PF_X ? segment.p_filesz : segment.p_memsz))
			continue;
		*ret = addr - segment.p_vaddr + segment.p_offset;
		return true;
	}
	return false;
}

/* What is not to be probed, and why. NULL: it may be. */
static const char *refuse(const struct probe_text *t, const struct symbol_files *files, const struct probe_found *found)
{
	if (found->is_indirect)
		return "is not called itself: it chooses one of several functions when a program starts. Probe these, by a "
		       "pattern such as *_avx*";
	if (t->type == PROBE_URETPROBE && functions_is_go(files, found->addr))
		return "is Go's, which moves its stacks: a probe where it returns would crash the program. Use uprobe";
	if (t->type == PROBE_UPROBE && t->name[0] && found->size_bytes && t->offset >= found->size_bytes)
		return "ends before that offset";
	return NULL;
}

/* Does an instruction begin at @at in the file? Before an address that users give themselves nobody knows where any does. */
static bool begins_at(const struct probe_text *t, const struct elf_image *image, uint64_t at)
{
	return t->type != PROBE_UPROBE || !t->name[0] || code_begins_at(image->data, image->len_bytes, at - t->offset, at);
}

static int add(const char *text, const struct probe_text *t, const char *path, const struct symbol_files *files,
	       const struct probe_found *found, struct probe_set *set, struct agent_error *err)
{
	uint64_t addr = found->addr + (t->name[0] && t->type != PROBE_USDT ? t->offset : 0);
	struct probe probe = { .type = t->type, .target = (char *)path, .is_of_pattern = probe_is_pattern(t->name) };
	char label[PROBE_FILE_BYTES + PROBE_NAME_BYTES];
	const char *reason = refuse(t, files, found);
	struct elf_image image;

	if (reason && probe.is_of_pattern)
		return 0;
	if (reason) {
		snprintf(err->message, sizeof(err->message), "'%.200s': %.100s %s", text,
			 t->name[0] ? found->name : "the function", reason);
		return -EINVAL;
	}
	if (elf_image_open(files->program.data, files->program.len_bytes, &image) ||
	    !find_offset(&image, addr, PF_X, &probe.offset) ||
	    (found->semaphore && !find_offset(&image, found->semaphore, PF_W, &probe.semaphore))) {
		snprintf(err->message, sizeof(err->message), "'%.200s': address %llx is not in the code of %.200s", text,
			 (unsigned long long)addr, path);
		return -EINVAL;
	}
	if (!begins_at(t, &image, probe.offset)) {
		snprintf(err->message, sizeof(err->message),
			 "'%.200s': no instruction begins there: a probe would break the program", text);
		return -EINVAL;
	}
	if (probe_find_arguments(text, t, found->arguments, &probe, err))
		return -EINVAL;
	if (t->type == PROBE_UPROBE && t->name[0] && !t->offset && functions_is_go(files, addr))
		probe.offset += code_go_check_bytes(image.data + probe.offset, image.len_bytes - probe.offset);
	snprintf(label, sizeof(label), t->offset && t->name[0] ? "%s:%s:%s+%llu" : "%s:%s:%s", probe_types[t->type].word,
		 t->file, found->name, (unsigned long long)t->offset);
	probe.label = label;
	return probe_set_add(set, &probe);
}

static int add_all(const char *text, const struct probe_text *t, const char *path, const struct symbol_files *files,
		   struct probe_places *found, struct probe_set *set, struct agent_error *err)
{
	uint32_t before = set->count;
	int error = found->no_memory ? -ENOMEM : 0;

	if (found->matched > PROBES_A_PATTERN) {
		snprintf(err->message, sizeof(err->message), "'%.200s' means %zu places: %d at most; narrow the pattern",
			 text, found->matched, PROBES_A_PATTERN);
		return -E2BIG;
	}
	for (size_t i = 0; i < found->count && !error; i++)
		error = add(text, t, path, files, &found->list[i], set, err);
	if (!error && set->count == before) {
		snprintf(err->message, sizeof(err->message),
			 "'%.200s': none of the %zu functions so called can be probed: they only choose others, or are Go's",
			 text, found->count);
		error = -EINVAL;
	}
	return error;
}

/* --- the search --- */

static int explain_none(const struct search *s, const char *path, struct agent_error *err)
{
	bool is_usdt = s->text->type == PROBE_USDT;

	if (!s->names)
		snprintf(err->message, sizeof(err->message),
			 is_usdt ? "%.200s was built without USDT events"
				 : "%.200s has no symbols, nor has a debug file of it; give an address: "
				   "uprobe:FILE:0xADDRESS",
			 path);
	else
		snprintf(err->message, sizeof(err->message), "there is no %s '%.60s%s%.100s' in %.120s%s%.100s%s",
			 is_usdt ? "event" : "function", s->text->provider, s->text->provider[0] ? ":" : "", s->text->name,
			 path, s->near[0] ? " (did you mean " : "", s->near, s->near[0] ? "?)" : "");
	return -ENOENT;
}

static int search(const struct symbol_files *files, struct search *s)
{
	struct elf_image image;
	int error;

	if (s->text->type == PROBE_USDT) {
		error = elf_image_open(files->program.data, files->program.len_bytes, &image);
		return error ? error : stapsdt_each(&image, on_note, s) == -EBADMSG ? -EBADMSG : 0;
	}
	error = functions_each(files, on_function, s);
	if (!s->found.matched && error != -ENOMEM) {
		s->is_demangled = true;
		error = functions_each(files, on_function, s);
	}
	return error;
}

/* The root below which a container's file, given by /proc/PID/root, looks for its debug file. NULL: our own; @below is the
 * path there. */
static const char *root_of(const char *path, char root[static 64], const char **below)
{
	int pid, len = 0;

	*below = path;
	if (sscanf(path, "/proc/%d/root%n", &pid, &len) != 1 || !len || path[len] != '/')
		return NULL;
	snprintf(root, 64, "%.*s", len, path);
	*below = path + len;
	return root;
}

int probe_user_places(const char *text, const struct probe_text *t, const char *path, struct probe_set *set,
		      struct agent_error *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	AUTO(search_fini) struct search s = { .text = t };
	struct symbol_files files = { 0 };
	struct probe_found *new;
	char root[64];
	const char *below, *in = root_of(path, root, &below);
	int error = fd < 0 ? -errno : symbol_files_open(fd, below, in, NULL, &files);

	if (error) {
		snprintf(err->message, sizeof(err->message), "cannot read %.300s: %s", path, strerror(-error));
		return error;
	}
	snprintf(s.wanted, sizeof(s.wanted), "%s%s%s", t->provider, t->provider[0] ? ":" : "", t->name);
	s.nearest = nearest_to(s.wanted);
	if (!t->name[0])
		probe_places_add(&s.found, t->offset, strchr(strchr(text, ':') + 1, ':') + 1, &new);
	else
		error = search(&files, &s);
	if (error == -EBADMSG)
		error = 0; /* it has what was sound */
	if (!error && !s.found.matched)
		error = explain_none(&s, path, err);
	if (!error)
		error = add_all(text, t, path, &files, &s.found, set, err);
	symbol_files_close(&files);
	return error;
}
