/* SPDX-License-Identifier: Apache-2.0 */
/* Removes passwords from /proc/PID/cmdline: that file shows the memory of the words, so the words are overwritten. The
 * password can be read for a moment before; a file avoids that. */
#include "cmd/options/hide.h"

#include <string.h>

/* The start of the password of the URL in @word, and its length; NULL: none. */
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
