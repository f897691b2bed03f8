/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the configuration file with libyaml. The document is taken apart at once into settings (section, key, values, line);
 * what they mean is asked of the options' table later, command by command. A setting's values are as a user would write them
 * for the flag: one text, or several of a sequence, which is for options that may be repeated or take a list.
 */
#include "cmd/options/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/text/nearest.h"
#include "base/vec.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/options.h"

struct setting {
	const struct cmd *section; /* NULL: for all commands */
	char *key;
	char **values;
	size_t value_cnt; /* 0: null */
	size_t line;
};

struct config_file {
	char *path;
	struct setting *settings;
	size_t count, cap;
};

static int complain(const struct config_file *f, size_t line, struct buf *error)
{
	buf_printf(error, "%s:%zu: ", f->path, line);
	return -EINVAL;
}

/* --- from the document to settings --- */

static int take_scalar(const struct config_file *f, const yaml_node_t *node, struct setting *s, struct buf *error)
{
	const char *text = (const char *)node->data.scalar.value;

	if (strlen(text) != node->data.scalar.length) {
		complain(f, node->start_mark.line + 1, error);
		buf_printf(error, "the value of '%s' has a zero byte", s->key);
		return -EINVAL;
	}
	s->values[s->value_cnt] = strdup(text);
	return s->values[s->value_cnt] ? (s->value_cnt++, 0) : -ENOMEM;
}

static bool is_null(const yaml_node_t *node)
{
	const char *text = (const char *)node->data.scalar.value;

	return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!*text || !strcmp(text, "~") || !strcmp(text, "null"));
}

static int take_values(const struct config_file *f, yaml_document_t *doc, yaml_node_t *node, struct setting *s,
		       struct buf *error)
{
	size_t count = node->type == YAML_SEQUENCE_NODE
			       ? (size_t)(node->data.sequence.items.top - node->data.sequence.items.start)
			       : 1;
	int err = 0;

	s->values = calloc(count + 1, sizeof(*s->values));
	if (!s->values)
		return -ENOMEM;
	if (is_null(node))
		return 0;
	if (node->type == YAML_SCALAR_NODE)
		return take_scalar(f, node, s, error);
	for (size_t i = 0; i < count && !err; i++) {
		yaml_node_t *item = yaml_document_get_node(doc, node->data.sequence.items.start[i]);

		if (!item || item->type != YAML_SCALAR_NODE) {
			complain(f, item ? item->start_mark.line + 1 : s->line, error);
			buf_printf(error, "'%s' takes texts and numbers, not lists in a list", s->key);
			return -EINVAL;
		}
		err = take_scalar(f, item, s, error);
	}
	return err;
}

static bool stands_already(const struct config_file *f, const struct cmd *section, const char *key)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->settings[i].section == section && !strcmp(f->settings[i].key, key))
			return true;
	return false;
}

static int add_setting(struct config_file *f, yaml_document_t *doc, const struct cmd *section, const yaml_node_t *key,
		       yaml_node_t *value, struct buf *error)
{
	const char *name = (const char *)key->data.scalar.value;
	struct setting *s;

	if (stands_already(f, section, name)) {
		complain(f, key->start_mark.line + 1, error);
		buf_printf(error, "'%s' stands here twice", name);
		return -EINVAL;
	}
	if (vec_reach(&f->settings, &f->cap, f->count))
		return -ENOMEM;
	s = &f->settings[f->count];
	*s = (struct setting){ .section = section, .key = strdup(name), .line = key->start_mark.line + 1 };
	if (!s->key)
		return -ENOMEM;
	f->count++;
	return take_values(f, doc, value, s, error);
}

static int take_mapping(struct config_file *f, yaml_document_t *doc, const struct cmd *section, yaml_node_t *map,
			struct buf *error)
{
	int err = 0;

	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top && !err; p++) {
		yaml_node_t *key = yaml_document_get_node(doc, p->key), *value = yaml_document_get_node(doc, p->value);
		const struct cmd *below;

		if (!key || !value || key->type != YAML_SCALAR_NODE || !key->data.scalar.length) {
			complain(f, (key ? key : map)->start_mark.line + 1, error);
			buf_puts(error, "a key is the name of an option, such as freq");
			return -EINVAL;
		}
		if (value->type != YAML_MAPPING_NODE) {
			err = add_setting(f, doc, section, key, value, error);
			continue;
		}
		below = section ? NULL : cmd_find((const char *)key->data.scalar.value);
		if (!below) {
			complain(f, key->start_mark.line + 1, error);
			buf_printf(error, "'%s' is no command, and options have no settings below them",
				   key->data.scalar.value);
			return -EINVAL;
		}
		err = take_mapping(f, doc, below, value, error);
	}
	return err;
}

static int take_document(struct config_file *f, yaml_document_t *doc, struct buf *error)
{
	yaml_node_t *root = yaml_document_get_root_node(doc);

	if (!root || is_null(root))
		return 0; /* an empty file */
	if (root->type == YAML_MAPPING_NODE)
		return take_mapping(f, doc, NULL, root, error);
	complain(f, root->start_mark.line + 1, error);
	buf_puts(error, "the file is lines of 'option: value', such as 'freq: 99'");
	return -EINVAL;
}

int config_file_parse(const char *path, const void *data, size_t len, struct config_file **ret, struct buf *error)
{
	struct config_file *f = calloc(1, sizeof(*f));
	yaml_document_t doc;
	yaml_parser_t parser;
	int err = 0;

	if (f)
		f->path = strdup(path);
	if (!f || !f->path || !yaml_parser_initialize(&parser)) {
		config_file_free(f);
		return -ENOMEM;
	}
	yaml_parser_set_input_string(&parser, data, len);
	if (yaml_parser_load(&parser, &doc)) {
		err = take_document(f, &doc, error);
		yaml_document_delete(&doc);
	} else if (parser.error == YAML_MEMORY_ERROR) {
		err = -ENOMEM;
	} else {
		err = complain(f, (parser.problem_mark.line ? parser.problem_mark.line : parser.context_mark.line) + 1,
			       error);
		buf_printf(error, "not YAML: %s", parser.problem ? parser.problem : "cannot be read");
	}
	yaml_parser_delete(&parser);
	if (err)
		config_file_free(f);
	else
		*ret = f;
	return err;
}

int config_file_read(const char *path, struct config_file **ret, struct buf *error)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	int err = io_read_file(path, CONFIG_FILE_MAX_BYTES, &text);

	if (err == -EFBIG) {
		buf_printf(error, "%s is no configuration: it is larger than 1 MiB", path);
		return -EINVAL;
	}
	if (err && err != -ENOMEM)
		buf_printf(error, "cannot read %s: %s", path, strerror(-err));
	return err ? err : config_file_parse(path, buf_text(&text), text.len, ret, error);
}

void config_file_free(struct config_file *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->count; i++) {
		for (size_t k = 0; k < f->settings[i].value_cnt; k++)
			free(f->settings[i].values[k]);
		free(f->settings[i].values);
		free(f->settings[i].key);
	}
	free(f->settings);
	free(f->path);
	free(f);
}

size_t config_file_count(const struct config_file *f)
{
	return f->count;
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
	return !strcmp(spec->name, s->key) && !(spec->commands & ON_NO_FILE) &&
	       (!s->section || spec->commands & s->section->bit);
}

/* The key is no option (of its section). */
static void print_unknown(const struct config_file *f, const struct setting *s, struct buf *error)
{
	struct nearest nearest = nearest_to(s->key);
	size_t count;
	const struct option_spec *specs = options_table(&count);

	complain(f, s->line, error);
	for (size_t i = 0; i < count; i++)
		if (specs[i].name[0] && !(specs[i].commands & ON_NO_FILE) &&
		    (!s->section || specs[i].commands & s->section->bit))
			nearest_offer(&nearest, specs[i].name);
	if (s->section)
		buf_printf(error, "'%s' is no option of 'hearth %s'", s->key, s->section->name);
	else
		buf_printf(error, "unknown key '%s'", s->key);
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
		print_unknown(f, &f->settings[i], error);
		return -EINVAL;
	}
	return 0;
}

static int set_values(const struct config_file *f, const struct setting *s, const struct option_spec *spec,
		      struct config *config, struct buf *error)
{
	bool is_many = spec->kind == OPTION_LIST || spec->kind == OPTION_WORDS || spec->kind == OPTION_PIDS;
	AUTO(buf_fini) struct buf origin = BUF_EMPTY;
	int err = 0;

	if (s->value_cnt > 1 && !is_many) {
		complain(f, s->line, error);
		buf_printf(error, "%s takes one value, not a list", s->key);
		return -EINVAL;
	}
	buf_printf(&origin, "%s:%zu: %s", f->path, s->line, s->key);
	for (size_t i = 0; i < s->value_cnt && !err; i++)
		err = option_set(spec, s->values[i], buf_text(&origin), config, error);
	return err ? err : s->value_cnt != 0;
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
	return found ? set_values(f, found, spec, config, error) : 0;
}

/* A value is right when an option of that name takes it; the first message is told when none does. */
static int check_setting(const struct config_file *f, const struct setting *s, struct buf *error)
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
		err = set_values(f, s, &specs[i], &config, error->len ? &other : error);
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
		int wrong = is_known(&f->settings[i]) ? check_setting(f, &f->settings[i], &error) : 1;

		if (wrong < 0)
			return wrong;
		if (wrong && !error.len)
			print_unknown(f, &f->settings[i], &error);
		if (wrong) {
			buf_printf(out, "%s\n", buf_text(&error));
			problems++;
		}
	}
	return out->failed ? -ENOMEM : problems;
}
