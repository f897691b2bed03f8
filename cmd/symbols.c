/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth symbols`: the indexes of names on disk, and what a file's addresses are called. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/files/output.h"
#include "cmd/resolve.h"
#include "cmd/symbols_push.h"
#include "symbols/code/source.h"
#include "symbols/index/cache.h"
#include "symbols/find/symbol_files.h"
#include "symbols/symbols.h"

/* --- the folder --- */

static const char *why(int err)
{
	switch (err) {
	case -EPERM:
		return "it or a file in it belongs to another user, or others may write there";
	case -ENOTDIR:
		return "it is no folder";
	case -ENOEXEC:
		return "it is no 64-bit ELF file";
	case -E2BIG:
		return "its names take more memory than hearth uses for one file";
	case -EFBIG:
		return "the index is larger than --symbol-cache-size";
	default:
		return strerror(-err);
	}
}

/* Opens the folder that @config names. NULL after a message; or without one, when it is not @needed and not there. */
static struct symbol_cache *open_cache(const struct config *config, bool is_needed)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct symbol_cache *cache = NULL;
	const char *folder;
	int err = 0;

	if (config->symbol_cache)
		buf_puts(&text, config->symbol_cache);
	else
		err = symbol_cache_default_folder(&text);
	folder = buf_text(&text);
	if (!is_needed && (err || access(folder, F_OK)))
		return NULL;
	if (err == -ENOENT) {
		log_error("there is no place for indexes, HOME is not set; say one with --symbol-cache");
		return NULL;
	}
	if (!err)
		err = symbol_cache_open(folder, config->symbol_cache_bytes, &cache);
	if (err)
		log_error("cannot use the folder of indexes %s: %s", folder, why(err));
	return cache;
}

/* The key of the file @fd. 0 or -errno. */
static int find_key(int fd, struct symbol_cache_key *key)
{
	struct build_ids ids;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	err = build_ids_read(fd, &ids);
	if (!err)
		symbol_cache_key(&ids, st.st_uid, key);
	return err;
}

/* --- build --- */

static const char *source_name(enum code_source source)
{
	static const char *const names[] = {
		[CODE_SOURCE_NONE] = "none",	       [CODE_SOURCE_GO] = "Go's table",	 [CODE_SOURCE_DWARF] = "DWARF",
		[CODE_SOURCE_SYMTAB] = "symbols",      [CODE_SOURCE_DYNSYM] = "exports", [CODE_SOURCE_PLT] = "stubs",
		[CODE_SOURCE_UNWIND] = "ranges alone",
	};
	_Static_assert(ARRAY_LEN(names) == CODE_SOURCE_MAX, "each source has a name");

	return source < CODE_SOURCE_MAX ? names[source] : "unknown";
}

/* Makes the index of @path and keeps it; @data has it afterwards. */
static int build_one(struct symbol_cache *cache, const char *path, struct buf *data)
{
	AUTO_CLOSE int fd = resolve_open_elf(path);
	struct symbol_cache_key key;
	struct symbol_files files;
	int err = fd < 0 ? fd : find_key(fd, &key);

	if (err)
		return err;
	err = resolve_open_symbol_files(fd, path, &files);
	if (err)
		return err;
	files.with_ranges = true;
	err = symbol_index_build(&files, key.build_id, data);
	symbol_files_close(&files);
	return err ? err : symbol_cache_add(cache, &key, data->data, data->len);
}

static int run_build(const struct config *config, struct symbol_cache *cache, char *const *paths, size_t count)
{
	int status = STATUS_DONE;

	(void)config;
	for (size_t i = 0; i < count; i++) {
		AUTO(buf_fini) struct buf data = BUF_EMPTY;
		uint64_t start_ns = clock_mono_ns();
		struct symbol_index *index;
		int err = build_one(cache, paths[i], &data);

		if (!err)
			err = symbol_index_open(data.data, data.len, &index);
		if (err) {
			log_error("no index of %s: %s", paths[i], why(err));
			status = STATUS_FAILED;
			continue;
		}
		log_info("index of %s: %" PRIu64 " functions from %s, %.1f MB, in %.2f s%s", paths[i],
			 symbol_index_sizes(index).functions, source_name(symbol_index_head(index)->best),
			 (double)data.len / 1e6, (double)(clock_mono_ns() - start_ns) / 1e9,
			 symbol_index_head(index)->is_broken ? "; a part of the file's tables is broken" : "");
		symbol_index_close(index);
	}
	return status;
}

/* --- show --- */

static void write_index(const char *path, const struct symbol_cache_key *key, const struct symbol_index *index,
			struct buf *out)
{
	const struct symbol_index_head *head = symbol_index_head(index);
	struct symbol_index_sizes sizes = symbol_index_sizes(index);

	buf_printf(out, "file        %s\n", path);
	buf_printf(out, "index       %s\n", key->name);
	buf_printf(out, "version     %d\n", SYMBOL_INDEX_VERSION);
	buf_printf(out, "best source %s%s\n", source_name(head->best), head->is_broken ? ", broken in parts" : "");
	buf_printf(out, "also read   %s%s%s%s\n", head->had_debug ? "debug file " : "", head->had_common ? "dwz file " : "",
		   head->had_package ? "dwp file" : "",
		   head->had_debug || head->had_common || head->had_package ? "" : "nothing");
	buf_printf(out, "functions   %" PRIu64 ", names %" PRIu64 " bytes\n", sizes.functions, sizes.name_bytes);
	buf_printf(out, "files       %" PRIu64 ", paths %" PRIu64 " bytes\n", sizes.files, sizes.path_bytes);
	buf_printf(out, "steps       %" PRIu64 ", code %" PRIu64 " bytes\n", sizes.steps, sizes.code_bytes);
	buf_printf(out, "tables      %" PRIu64 " calls, %" PRIu64 " places, %" PRIu64 " bytes\n", sizes.calls, sizes.places,
		   sizes.table_bytes);
	buf_printf(out, "size        %" PRIu64 " bytes, %s\n", sizes.all_bytes,
		   symbol_index_check(index) ? "broken" : "checksums right");
}

static int run_show(const struct config *config, struct symbol_cache *cache, char *const *paths, size_t count)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	int status = STATUS_DONE;

	(void)config;
	for (size_t i = 0; i < count; i++) {
		AUTO_CLOSE int fd = resolve_open_elf(paths[i]);
		struct symbol_cache_key key;
		struct symbol_cache_entry entry;
		int err = fd < 0 ? fd : find_key(fd, &key);

		if (err) {
			log_error("cannot read %s: %s", paths[i], why(err));
			status = STATUS_FAILED;
			continue;
		}
		err = symbol_cache_find(cache, &key, &entry);
		if (err) {
			log_error("no index of %s: %s", paths[i],
				  err == -ENOENT ? "there is none, 'hearth symbols build' makes it" : why(err));
			status = STATUS_FAILED;
			continue;
		}
		if (out.len)
			buf_putc(&out, '\n');
		write_index(paths[i], &key, entry.index, &out);
		symbol_cache_entry_close(&entry);
	}
	return output_write(&out) == STATUS_DONE ? status : STATUS_FAILED;
}

/* --- prune --- */

static int remove_indexes(struct symbol_cache *cache, char *const *paths, size_t count)
{
	int status = STATUS_DONE;

	for (size_t i = 0; i < count; i++) {
		AUTO_CLOSE int fd = resolve_open_elf(paths[i]);
		struct symbol_cache_key key;
		int err = fd < 0 ? fd : find_key(fd, &key);

		if (!err)
			err = symbol_cache_remove(cache, &key);
		if (err) {
			log_error("cannot remove the index of %s: %s", paths[i], why(err));
			status = STATUS_FAILED;
		}
	}
	return status;
}

static int run_prune(const struct config *config, struct symbol_cache *cache, char *const *paths, size_t count)
{
	struct symbol_cache_pruned done;
	int err;

	(void)config;
	if (count)
		return remove_indexes(cache, paths, count);
	err = symbol_cache_prune(cache, &done);
	if (err) {
		log_error("cannot prune the folder of indexes: %s", why(err));
		return STATUS_FAILED;
	}
	log_info("removed %" PRIu64 " files, %.1f MB (%" PRIu64 " broken or of another version); kept %" PRIu64 ", %.1f MB",
		 done.removed, (double)done.removed_bytes / 1e6, done.broken, done.files, (double)done.bytes / 1e6);
	return STATUS_DONE;
}

/* --- the command --- */

static int run_resolve(const struct config *config, struct symbol_cache *cache, char *const *words, size_t count)
{
	return resolve(config, cache, words[0], words + 1, count - 1);
}

static int run_push(const struct config *config, struct symbol_cache *cache, char *const *words, size_t count)
{
	(void)cache;
	if (count < 2) {
		log_error("'hearth symbols push' needs files and then the address of a hearth, http://HOST:4318");
		return STATUS_USAGE;
	}
	return symbols_push(config, words[count - 1], words, count - 1);
}

static const struct {
	const char *name;
	bool needs_file, needs_folder;
	int (*run)(const struct config *config, struct symbol_cache *cache, char *const *words, size_t count);
} verbs[] = {
	{ "build", true, true, run_build },	 { "show", true, true, run_show },  { "prune", false, true, run_prune },
	{ "resolve", true, false, run_resolve }, { "push", true, false, run_push },
};

static int run_symbols(const struct config *config)
{
	const char *word = config->operands[0];
	struct symbol_cache *cache;
	size_t i = 0;
	int status;

	while (i < ARRAY_LEN(verbs) && strcmp(verbs[i].name, word) != 0)
		i++;
	if (i == ARRAY_LEN(verbs)) {
		log_error("'hearth symbols' does not know '%s'; it knows build, show, prune, resolve and push", word);
		return STATUS_USAGE;
	}
	if (verbs[i].needs_file && config->operand_count < 2) {
		log_error("'hearth symbols %s' needs a file; try 'hearth help symbols'", word);
		return STATUS_USAGE;
	}
	cache = open_cache(config, verbs[i].needs_folder);
	if (!cache && verbs[i].needs_folder)
		return STATUS_FAILED;
	status = verbs[i].run(config, cache, config->operands + 1, config->operand_count - 1);
	symbol_cache_close(cache);
	return status;
}

const struct cmd cmd_symbols = {
	.name = "symbols",
	.bit = ON_SYMBOLS,
	.summary = "name addresses of a file; make, show or remove indexes of names; send files with symbols",
	.operands = "build|show|prune|resolve|push [FILE...] [ADDR...|URL]",
	.description =
		"hearth keeps what it knows of a program's or library's names in an index, a file a build id. build makes "
		"the "
		"index of a FILE anew, show tells what is in it, prune removes those that are damaged, of another "
		"version of hearth, or beyond the size there may be; prune FILE removes the FILE's.\n\n"
		"resolve names addresses (hexadecimal, as in the ELF file) out of the index, or out of the file where there "
		"is "
		"none: the function on a line, file:line:column on the next, the same for each function that it was inlined "
		"into, then an empty line. What is not known is ?? and ??:0:0. This is what llvm-symbolizer writes. Without "
		"an "
		"ADDR, or for -, it answers the lines of standard input, each at once.\n\n"
		"push sends FILEs with symbols (executables, libraries, .debug files) to the hearth at URL, the last word: "
		"what "
		"it has got, or will get, as bare addresses of the same build ids then has names. Needs no root.",
	.example = "hearth symbols resolve /usr/bin/python3.11 4d1000",
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.run = run_symbols,
};
