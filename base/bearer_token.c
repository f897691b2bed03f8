/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is read whole at each call: it is small, a request goes out every few seconds, and time stamps would miss a
 * second change within their grain.
 */
#include "base/bearer_token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define PREFIX "Authorization: Bearer "

enum { MAX_TOKEN_BYTES = 16 << 10 };

struct bearer_token {
	const char *path;
	bool was_asked_for;
	char *header;
};

/* The header of the file's token, malloc'd. */
static int read_header(const char *path, char **ret)
{
	AUTO_FREE char *header = calloc(1, sizeof(PREFIX) + MAX_TOKEN_BYTES);
	char *token = header + strlen(PREFIX);
	ssize_t n;

	if (!header)
		return -ENOMEM;
	memcpy(header, PREFIX, strlen(PREFIX));
	n = io_read_text(AT_FDCWD, path, token, MAX_TOKEN_BYTES + 1);
	if (n < 0)
		return (int)n;
	while (n > 0 && strchr(" \t\r\n", token[n - 1]))
		token[--n] = '\0';
	if (!n || n == MAX_TOKEN_BYTES || strlen(token) != (size_t)n || strpbrk(token, " \t\r\n"))
		return -ENODATA;
	*ret = MOVE(header);
	return 0;
}

int bearer_token_new(const char *path, struct bearer_token **ret)
{
	struct bearer_token *t = calloc(1, sizeof(*t));
	int error = t ? read_header(path, &t->header) : -ENOMEM;

	if (error) {
		free(t);
		return error;
	}
	t->path = path;
	*ret = t;
	return 0;
}

void bearer_token_free(struct bearer_token *t)
{
	if (t)
		free(t->header);
	free(t);
}

int bearer_token_read(struct bearer_token *t)
{
	char *header = NULL;
	int error = read_header(t->path, &header);
	bool is_new = !t->was_asked_for;

	if (!error && strcmp(header, t->header) != 0) {
		free(t->header);
		t->header = MOVE(header);
		is_new = true;
	}
	free(header);
	t->was_asked_for = true;
	return is_new ? 1 : error;
}

const char *bearer_token_header(const struct bearer_token *t)
{
	return t->header;
}
