/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translates the lazy backend's flags into hearth's options. The flags are recognised by a dot or by one dash before a long
 * name, which hearth itself never has; --grpc-address and --http-address mean the same in both. Runs once, before the
 * options are parsed.
 */
#include "cmd/options/seed_flags.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

enum flag { GRPC_ADDRESS, HTTP_ADDRESS, RECEIVER, SAMPLE_TYPES, METRICS, DIR, CONTAINER_ID, FLAGS };

static const struct {
	const char *name, *value; /* its default */
} flags[FLAGS] = {
	[GRPC_ADDRESS] = { "grpc-address", "0.0.0.0:4317" },
	[HTTP_ADDRESS] = { "http-address", "0.0.0.0:4318" },
	[RECEIVER] = { "receiver", "stdout" },
	[SAMPLE_TYPES] = { "stdout.sample-types", "" },
	[METRICS] = { "prometheus.metrics", "127.0.0.1:2112" },
	[DIR] = { "filesystem.dir", "profiles" },
	[CONTAINER_ID] = { "filesystem.container-id", "" },
};

/* The flag that @word is; FLAGS: none of them. *@value_ret is the text behind its '=', or NULL. */
static enum flag find(const char *word, const char **value_ret)
{
	const char *name = word + 1 + (word[0] == '-' && word[1] == '-');
	size_t len = word[0] == '-' ? strcspn(name, "=") : 0;
	enum flag f = GRPC_ADDRESS;

	while (f < FLAGS && (strlen(flags[f].name) != len || memcmp(flags[f].name, name, len) != 0))
		f++;
	*value_ret = f < FLAGS && name[len] ? name + len + 1 : NULL;
	return f;
}

/* Whether @word is one that hearth itself does not have. */
static bool is_foreign(const char *word)
{
	const char *value;
	enum flag f = find(word, &value);

	return f < FLAGS && (word[1] != '-' || f > HTTP_ADDRESS);
}

static int put(struct seed_flags *f, const char *word, size_t len)
{
	char **argv = reallocarray(f->argv, (size_t)f->argc + 2, sizeof(*argv));

	if (!argv)
		return -ENOMEM;
	f->argv = argv;
	argv[f->argc] = strndup(word, len);
	argv[f->argc + 1] = NULL;
	return argv[f->argc] ? (f->argc++, 0) : -ENOMEM;
}

static int put_option(struct seed_flags *f, const char *name, const char *value, size_t value_len)
{
	int err = put(f, name, strlen(name));

	return err ? err : put(f, value, value_len);
}

/* An option for each word of @list, which has commas between them. */
static int put_words(struct seed_flags *f, const char *name, const char *list)
{
	int err = 0;

	while (*list && !err) {
		size_t skip = strspn(list, ", \t"), len = strcspn(list + skip, ","), used = len;

		while (used && strchr(" \t", list[skip + used - 1]))
			used--;
		if (used)
			err = put_option(f, name, list + skip, used);
		list += skip + len;
	}
	return err;
}

static int put_receiver(struct seed_flags *f, const char *const values[FLAGS], struct buf *error)
{
	AUTO(buf_fini) struct buf dir = BUF_EMPTY;
	int err;

	if (!strcmp(values[RECEIVER], "stdout")) {
		err = put(f, "--print", 7);
		return err ? err : put_words(f, "--print-sample-type", values[SAMPLE_TYPES]);
	}
	if (!strcmp(values[RECEIVER], "prometheus")) {
		err = put_option(f, "--sink", "prometheus", 10);
		return err ? err : put_option(f, "--metrics-address", values[METRICS], strlen(values[METRICS]));
	}
	if (strcmp(values[RECEIVER], "filesystem") != 0) {
		buf_printf(error, "unknown receiver \"%s\" (supported: stdout, prometheus, filesystem)", values[RECEIVER]);
		return -EINVAL;
	}
	buf_printf(&dir, "dir=%s", values[DIR]);
	err = put_option(f, "--sink", buf_text(&dir), dir.len);
	if (!err && values[CONTAINER_ID][0])
		err = put_option(f, "--dir-container", values[CONTAINER_ID], strlen(values[CONTAINER_ID]));
	return err;
}

int seed_flags_rewrite(int argc, char **argv, struct seed_flags *ret, struct buf *error)
{
	const char *values[FLAGS];
	bool is_any = false;
	int err;

	*ret = (struct seed_flags){ 0 };
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		is_any |= is_foreign(argv[i]);
	if (!is_any)
		return 0;
	for (int i = 0; i < FLAGS; i++)
		values[i] = flags[i].value;
	err = put(ret, argv[0], strlen(argv[0]));
	for (int i = 1; i < argc && !err; i++) {
		const char *value;
		enum flag f = find(argv[i], &value);

		if (f == FLAGS) {
			err = put(ret, argv[i], strlen(argv[i]));
			continue;
		}
		if (!value && i + 1 == argc) {
			buf_printf(error, "%s needs a value", argv[i]);
			return -EINVAL;
		}
		values[f] = value ? value : argv[++i];
	}
	for (enum flag f = GRPC_ADDRESS; f <= HTTP_ADDRESS && !err; f++)
		err = put_option(ret, f == GRPC_ADDRESS ? "--grpc-address" : "--http-address", values[f], strlen(values[f]));
	return err ? err : put_receiver(ret, values, error);
}

void seed_flags_fini(struct seed_flags *f)
{
	for (int i = 0; i < f->argc; i++)
		free(f->argv[i]);
	free(f->argv);
	*f = (struct seed_flags){ 0 };
}
