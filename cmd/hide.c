/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords out of /proc/PID/cmdline: that is the memory of the words themselves, so these are written over. There is a
 * moment before; who wants none has a file. */
#include "cmd/hide.h"

#include <string.h>

/* Where the password of the URL in @word begins, and its length; NULL: it has none. */
static char *find_password(char *word, size_t *len_ret)
{
	char *scheme = strstr(word, "://"), *start, *end;

	if (!scheme)
		return NULL;
	start = scheme + strlen("://");
	end = memrchr(start, '@', strcspn(start, "/?#"));
	start = end ? memchr(start, ':', (size_t)(end - start)) : NULL;
	if (!start)
		return NULL;
	*len_ret = (size_t)(end - start - 1);
	return start + 1;
}

void hide_password(char *text)
{
	size_t len;
	char *password = find_password(text, &len);

	if (password)
		memset(password, 'x', len);
}

void hide_passwords(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		size_t len;
		char *copy = find_password(argv[i], &len) ? strdup(argv[i]) : NULL;

		if (!copy)
			continue;
		hide_password(argv[i]);
		argv[i] = copy;
	}
}
