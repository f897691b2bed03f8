/* SPDX-License-Identifier: Apache-2.0 */
/* A Collector's file: any bytes, read, replaced, resolved, told of, written and read again. Nothing outside of it is read:
 * texts that name files or servers are passed over. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/tree.h"
#include "cmd/pipeline/expand.h"
#include "cmd/pipeline/pipelines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add(void *arg, const char *text)
{
	buf_puts(arg, text);
}

/* What is written reads as what was read. */
static void check_written(const struct tree *root)
{
	AUTO(buf_fini) struct buf first = BUF_EMPTY, second = BUF_EMPTY, error = BUF_EMPTY;
	struct tree again;

	tree_write(root, 0, &first);
	if (tree_parse("again", buf_text(&first), first.len, &again, &error))
		return; /* bytes that YAML does not have are written as they are */
	tree_write(&again, 0, &second);
	if (strcmp(buf_text(&first), buf_text(&second)) != 0)
		abort();
	tree_fini(&again);
}

static bool names_others(const uint8_t *data, size_t size)
{
	return memmem(data, size, "file:", 5) || memmem(data, size, "http", 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY, out = BUF_EMPTY;
	struct pipelines *p = NULL;
	struct tree root;

	if (tree_parse("c", data, size, &root, &error)) {
		if (!error.len)
			abort();
		return 0;
	}
	check_written(&root);
	if (!names_others(data, size) && expand_tree(&root, &error) && !error.len)
		abort();
	buf_reset(&error);
	if (root.kind != TREE_MAP || pipelines_new(&root, &p, &error)) {
		if (root.kind == TREE_MAP && !error.len)
			abort();
	} else {
		pipelines_notes(p, add, &out);
		pipelines_show(p, &out);
		for (size_t i = 0; i < pipelines_setting_count(p); i++)
			if (!pipelines_setting(p, i)->key)
				abort();
		pipelines_free(p);
	}
	tree_fini(&root);
	return 0;
}
