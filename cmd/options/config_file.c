/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document is taken apart at once into settings, each a key and its value in the tree that was read; what they mean is
 * asked of the options' table later, command by command. A setting's values are as a user would write them for the flag: one
 * text, or several of a sequence, which is for options that may be repeated or take a list.
 */
#include "cmd/options/config_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/nearest.h"
#include "base/text/tree.h"
#include "base/vec.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/options.h"
#include "cmd/options/overlay.h"
#include "cmd/pipeline/pipelines.h"
#include "cmd/pipeline/source.h"

struct setting {
	const struct cmd *section; /* NULL: for all commands */
	const struct tree *tree;   /* the key and what stands behind it; borrowed */
};

struct str_range {
	const void *data;
	size_t len;
};

struct config_file {
	char **names; /* of the documents, to which the tree points; NULL-terminated */
	struct tree root;
	struct setting *settings;
	size_t count, cap;
	struct pipelines *pipelines; /* NULL: it is no pipeline file */
};

static int complain(const struct tree *t, struct buf *error)
{
	tree_place(t, error);
	return -EINVAL;
}

/* --- from the document to settings --- */

static size_t value_count(const struct setting *s)
{
	return s->tree->kind == TREE_LIST ? s->tree->count : s->tree->kind == TREE_TEXT;
}

static const char *value_of(const struct setting *s, size_t i)
{
	return s->tree->kind == TREE_LIST ? s->tree->items[i].text : s->tree->text;
}

static int check_values(const struct tree *t, struct buf *error)
{
	for (size_t i = 0; t->kind == TREE_LIST && i < t->count; i++) {
		if (t->items[i].kind == TREE_TEXT)
			continue;
		complain(&t->items[i], error);
		buf_printf(error, "'%s' takes texts and numbers, not lists in a list", t->key);
		return -EINVAL;
	}
	return 0;
}

static int add_setting(struct config_file *f, const struct cmd *section, const struct tree *t, struct buf *error)
{
	if (vec_reach(&f->settings, &f->cap, f->count))
		return -ENOMEM;
	f->settings[f->count++] = (struct setting){ .section = section, .tree = t };
	return check_values(t, error);
}

static int take_map(struct config_file *f, const struct cmd *section, const struct tree *map, struct buf *error)
{
	int err = 0;

	for (size_t i = 0; i < map->count && !err; i++) {
		const struct tree *t = &map->items[i];
		const struct cmd *below = section || t->kind != TREE_MAP ? NULL : cmd_find(t->key);

		if (t->kind != TREE_MAP) {
			err = add_setting(f, section, t, error);
		} else if (below) {
			err = take_map(f, below, t, error);
		} else {
			err = complain(t, error);
			buf_printf(error, "'%s' is no command, and options have no settings below them", t->key);
		}
	}
	return err;
}

/* The flat settings that a pipeline file means. */
static int take_pipelines(struct config_file *f, struct buf *error)
{
	int err = pipelines_new(&f->root, &f->pipelines, error);
	size_t count = err ? 0 : pipelines_setting_count(f->pipelines);

	if (!err)
		err = overlay_check(f->pipelines, error);
	for (size_t i = 0; i < count && !err; i++)
		err = add_setting(f, NULL, pipelines_setting(f->pipelines, i), error);
	return err == -EINVAL ? -EBADMSG : err;
}

static int take_root(struct config_file *f, struct buf *error)
{
	if (f->root.kind == TREE_NULL)
		return 0; /* an empty file */
	if (f->root.kind == TREE_MAP)
		return pipelines_are_in(&f->root) ? take_pipelines(f, error) : take_map(f, NULL, &f->root, error);
	complain(&f->root, error);
	buf_puts(error, "the file is lines of 'option: value', such as 'freq: 99'");
	return -EINVAL;
}

static int copy_names(struct config_file *f, const char *const *names)
{
	size_t count = 0;

	while (names && names[count])
		count++;
	f->names = calloc(count + 1, sizeof(*f->names));
	for (size_t i = 0; f->names && i < count; i++) {
		f->names[i] = strdup(names[i]);
		if (!f->names[i])
			return -ENOMEM;
	}
	return f->names ? 0 : -ENOMEM;
}

/* A file of @text, or, where that is NULL, of what @names and @sets lead to. */
static int make(const char *const *names, const char *const *sets, const struct str_range *text, struct config_file **ret,
		struct buf *error)
{
	struct config_file *f = calloc(1, sizeof(*f));
	int err = f ? copy_names(f, names) : -ENOMEM;

	if (!err && text)
		err = tree_parse(f->names[0], text->data, text->len, &f->root, error);
	else if (!err)
		err = source_read_all((const char *const *)f->names, sets, &f->root, error);
	if (!err)
		err = take_root(f, error);
	if (err)
		config_file_free(f);
	else
		*ret = f;
	return err;
}

int config_file_parse(const char *path, const void *data, size_t len, struct config_file **ret, struct buf *error)
{
	const char *const names[] = { path, NULL };

	return make(names, NULL, &(struct str_range){ data, len }, ret, error);
}

int config_file_read(const char *const *sources, const char *const *sets, struct config_file **ret, struct buf *error)
{
	return make(sources, sets, NULL, ret, error);
}

void config_file_free(struct config_file *f)
{
	if (!f)
		return;
	pipelines_free(f->pipelines);
	free(f->settings);
	tree_fini(&f->root);
	for (size_t i = 0; f->names && f->names[i]; i++)
		free(f->names[i]);
	free(f->names);
	free(f);
}

size_t config_file_count(const struct config_file *f)
{
	return f->count;
}

const struct pipelines *config_file_pipelines(const struct config_file *f)
{
	return f ? f->pipelines : NULL;
}

const struct tree *config_file_tree(const struct config_file *f)
{
	return &f->root;
}

/* Would somebody else decide what runs as us? */
static bool is_trusted(const char *path)
{
	struct stat st;

	return !access(path, R_OK) && !stat(path, &st) && S_ISREG(st.st_mode) && !(st.st_mode & S_IWOTH) &&
	       (!st.st_uid || st.st_uid == geteuid());
}

int config_file_find(struct buf *path)
{
	const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (folder && folder[0] == '/')
		buf_printf(path, "%s/hearth.yaml", folder);
	else if (home && home[0] == '/')
		buf_printf(path, "%s/.config/hearth.yaml", home);
	if (path->len && is_trusted(buf_text(path)))
		return 0;
	buf_reset(path);
	buf_puts(path, "/etc/hearth.yaml");
	return path->failed ? -ENOMEM : is_trusted(buf_text(path)) ? 0 : -ENOENT;
}

/* --- what settings mean --- */

static bool fits(const struct option_spec *spec, const struct setting *s)
{
	return !strcmp(spec->name, s->tree->key) && !(spec->commands & ON_NO_FILE) &&
	       (!s->section || spec->commands & s->section->bit);
}

/* The key is no option (of its section). */
static void print_unknown(const struct setting *s, struct buf *error)
{
	struct nearest nearest = nearest_to(s->tree->key);
	size_t count;
	const struct option_spec *specs = options_table(&count);

	complain(s->tree, error);
	for (size_t i = 0; i < count; i++)
		if (specs[i].name[0] && !(specs[i].commands & ON_NO_FILE) &&
		    (!s->section || specs[i].commands & s->section->bit))
			nearest_offer(&nearest, specs[i].name);
	if (s->section)
		buf_printf(error, "'%s' is no option of 'hearth %s'", s->tree->key, s->section->name);
	else
		buf_printf(error, "unknown key '%s'", s->tree->key);
	if (nearest.best)
		buf_printf(error, "; did you mean '%s'?", nearest.best);
}

static bool is_known(const struct setting *s)
{
	size_t count;
	const struct option_spec *specs = options_table(&count);

	for (size_t i = 0; i < count; i++)
		if (fits(&specs[i], s))
			return true;
	return false;
}

int config_file_check_keys(const struct config_file *f, struct buf *error)
{
	for (size_t i = 0; i < f->count; i++) {
		if (is_known(&f->settings[i]))
			continue;
		print_unknown(&f->settings[i], error);
		return -EINVAL;
	}
	return 0;
}

static int set_values(const struct setting *s, const struct option_spec *spec, struct config *config, struct buf *error)
{
	bool is_many = spec->kind == OPTION_LIST || spec->kind == OPTION_WORDS || spec->kind == OPTION_PIDS;
	AUTO(buf_fini) struct buf origin = BUF_EMPTY;
	int err = 0;

	if (value_count(s) > 1 && !is_many) {
		complain(s->tree, error);
		buf_printf(error, "%s takes one value, not a list", s->tree->key);
		return -EINVAL;
	}
	tree_place(s->tree, &origin);
	buf_puts(&origin, s->tree->key);
	for (size_t i = 0; i < value_count(s) && !err; i++)
		err = option_set(spec, value_of(s, i), buf_text(&origin), config, error);
	return err ? err : value_count(s) != 0;
}

int config_file_set(const struct config_file *f, const struct cmd *cmd, const struct option_spec *spec,
		    struct config *config, struct buf *error)
{
	const struct setting *found = NULL;

	for (size_t i = 0; i < f->count; i++) {
		const struct setting *s = &f->settings[i];

		if (fits(spec, s) && (!s->section || s->section == cmd) && (!found || s->section))
			found = s;
	}
	return found ? set_values(found, spec, config, error) : 0;
}

/* A value is right when an option of that name takes it; the first message is told when none does. */
static int check_setting(const struct setting *s, struct buf *error)
{
	size_t count;
	const struct option_spec *specs = options_table(&count);
	int result = 1;

	for (size_t i = 0; i < count && result > 0; i++) {
		AUTO(buf_fini) struct buf other = BUF_EMPTY;
		AUTO(config_fini) struct config config = { 0 };
		int err;

		if (!fits(&specs[i], s))
			continue;
		err = set_values(s, &specs[i], &config, error->len ? &other : error);
		if (err == -ENOMEM)
			return err;
		if (err >= 0)
			result = 0;
	}
	return result;
}

int config_file_check(const struct config_file *f, struct buf *out)
{
	int problems = 0;

	for (size_t i = 0; i < f->count; i++) {
		AUTO(buf_fini) struct buf error = BUF_EMPTY;
		int wrong = is_known(&f->settings[i]) ? check_setting(&f->settings[i], &error) : 1;

		if (wrong < 0)
			return wrong;
		if (wrong && !error.len)
			print_unknown(&f->settings[i], &error);
		if (wrong) {
			buf_printf(out, "%s\n", buf_text(&error));
			problems++;
		}
	}
	return out->failed ? -ENOMEM : problems;
}
